// What the verbs of normlab-torch share.
#include <ATen/Parallel.h>

#include "normlab/base/cores.h"
#include "normlab/base/text.h"
#include "normlab/cli/torch/verbs.h"
#include "normlab/config/flops.h"
#include "normlab/train/progress.h"

namespace normlab {

CLI::App* add_torch_verb(CLI::App& app, const char* name) { return app.add_subcommand(name, description_of(name)); }

void use_threads(int threads) { at::set_num_threads(threads > 0 ? threads : core_count()); }

int training_threads(const Config& config) {
  // Of a step; below it a second thread waits longer than it works (docs/kernels.md).
  constexpr double least_flops = 1e9;
  constexpr int any_vocabulary = 256;
  const bool small = flops_of_step(config, any_vocabulary) < least_flops;
  return config.train.threads > 0 || !small ? config.train.threads : 1;
}

int decoding_threads(int threads) { return threads > 0 ? threads : 1; }

void add_device(CLI::App& verb, std::string& device) {
  verb.add_option("--device", device, "auto, cpu, cuda or cuda:N; default auto: CUDA where there is one")
      ->type_name("DEVICE");
}

void add_allow_nonfinite(CLI::App& verb, bool& allowed) {
  verb.add_flag("--allow-nonfinite", allowed, "accept weights that are NaN or infinite; default: exit code 3");
}

std::string progress_text(const Progress& p) {
  return concat("step ", p.step, "/", p.max_steps, "  loss ", significant(p.loss, 4),
                p.val_loss ? concat("  val ", significant(*p.val_loss, 4)) : "", "  ", si(p.tokens_per_second),
                " tokens/s  left ", clock_time(p.seconds_left));
}

}  // namespace normlab
