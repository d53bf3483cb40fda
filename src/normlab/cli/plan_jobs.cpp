#include "normlab/cli/plan_jobs.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>

#include "normlab/base/file.h"
#include "normlab/base/prose.h"
#include "normlab/base/text.h"
#include "normlab/cli/torch_verbs.h"
#include "normlab/cli/verbs.h"
#include "normlab/study/run/schedule.h"

namespace normlab {
namespace {

namespace fs = std::filesystem;

constexpr int warning_seconds = 120;  // before the time limit; enough to save
constexpr double margin = 1.5;        // for machines that are slower, or shared

std::string absolute_path(const fs::path& path) { return fs::absolute(path).lexically_normal().string(); }

std::string next_command(const Plan& plan) {
  return concat(shell_word(fs::read_symlink("/proc/self/exe").string()), " trial ",
                shell_word(absolute_path(plan.folder)), " --next");
}

std::string slurm_time(double seconds) {
  const auto minutes = static_cast<long long>(std::ceil(seconds / 60));
  char text[40];
  std::snprintf(text, sizeof text, "%lld-%02lld:%02lld:00", minutes / 1440, minutes / 60 % 24, minutes % 60);
  return text;
}

std::string slurm_script(const Plan& plan, size_t left, double limit) {
  const int threads = std::max(1, plan.trials.front().config.train.threads);
  const std::string folder = absolute_path(plan.folder);
  return concat(
      "#!/bin/bash\n"
      "# Written by `normlab plan --slurm`. Each task runs the next trial that is free. A trial that is stopped, or "
      "that\n"
      "# reaches the time limit, saves and is queued again; it resumes bit-exactly.\n"
      "#SBATCH --job-name=normlab\n"
      "#SBATCH --array=1-",
      left, "\n#SBATCH --ntasks=1\n#SBATCH --cpus-per-task=", threads, "\n#SBATCH --time=", slurm_time(limit),
      "\n#SBATCH --signal=USR1@", warning_seconds,
      "\n#SBATCH --requeue\n"
      "#SBATCH --open-mode=append\n"
      "#SBATCH --output=",
      shell_word(replace_all(folder, "%", "%%") + "/slurm-%A_%a.log"),
      // From Slurm 22.05 on, srun does not take the number of processors from the head of the script.
      "\n\nsrun --cpus-per-task=", threads, " ", next_command(plan),
      " --quiet\ncode=$?\n"
      "if [ $code -eq 75 ]; then\n"
      "  scontrol requeue \"${SLURM_ARRAY_JOB_ID}_${SLURM_ARRAY_TASK_ID}\"\n"
      "fi\n"
      "exit $code\n");
}

}  // namespace

Exit plan_jobs(const JobOptions& options) {
  const Plan plan = load_plan(options.study);
  require_this_version(plan);
  if (!plan.is_tuned())
    throw UsageError("plan", concat("the tuning in ", options.study, "/tuning has not ended. Plan that first: ",
                                    own_command({"plan", options.study + "/tuning"}), "."));
  const StudyText text = text_of(plan);
  const std::vector<double> flops = flops_of(plan, text);
  const std::vector<const Trial*> queue = queue_of(plan, StudyProgress(plan, flops), flops);
  if (queue.empty()) throw UsageError("plan", concat(options.study, " has no trial left to run."));
  const int at_once = default_jobs(plan);
  if (options.parallel)
    print_line(
        concat("seq ", queue.size(), " | parallel -N0 -j ", at_once, " ", shell_word(next_command(plan) + " --quiet")));
  if (!options.slurm) return Exit::done;

  const double speed = options.speed > 0
                           ? options.speed
                           : measure_speed(queue.front()->config, text.vocab_size, at_once).flops_per_second;
  const double longest = flops[queue.front()->number - 1] / speed, limit = margin * longest + warning_seconds + 60;
  const fs::path script = plan.folder / "slurm.sh";
  write_file_atomically(script, slurm_script(plan, queue.size(), limit));
  print_line(concat(queue.size(), " trials to do, the longest ", spoken_time(longest),
                    options.speed > 0 ? " at the given speed" : " by ten steps here", "; time limit ",
                    slurm_time(limit)));
  print_line(concat("submit with: sbatch ", shell_word(script.string())));
  return Exit::done;
}

}  // namespace normlab
