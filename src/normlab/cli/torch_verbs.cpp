#include "normlab/cli/torch_verbs.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <nlohmann/json.hpp>

#include "normlab/base/error.h"
#include "normlab/base/text.h"
#include "normlab/cli/child_process.h"

namespace normlab {
namespace {

namespace fs = std::filesystem;

constexpr TorchVerb verbs[] = {
    {"train", "train one model; all output goes to the folder of the run"},
    {"trial", "run one trial of a study, or the next that is free, for job arrays"},
    {"eval", "loss, perplexity and bits per byte; of a translator loss and BLEU"},
    {"inspect", "attention of a trained model: entropy, logits, maps, spectra"},
    {"theory", "how the width of a head affects attention of random vectors"},
    {"generate", "continue a text with a trained model"},
    {"translate", "translate standard input, one line per line"},
    {"verify", "compare logits, loss and gradients with other implementations"},
    {"import", "a checkpoint from weights of Hugging Face models, nanoGPT or nGPT"},
    {"export", "a model to pass on; --absorb: without its constants and gains"},
    {"bench", "measure speed and memory, as a share of the peak of the machine"},
    {"doctor", "libtorch, threads, instruction set, memory; which data is found"},
};

}  // namespace

std::span<const TorchVerb> torch_verbs() { return verbs; }

bool is_torch_verb(const std::string& verb) {
  return std::any_of(std::begin(verbs), std::end(verbs), [&](const TorchVerb& row) { return verb == row.name; });
}

const char* description_of(const std::string& verb) {
  for (const TorchVerb& row : verbs)
    if (verb == row.name) return row.description;
  throw UsageError(verb, "there is no such verb.");
}

std::vector<VerbInfo> torch_verb_infos() {
  ChildProcess child({torch_program().string(), "describe"});
  const auto answer = child.read_line();
  if (!answer) throw Error("describe", "stopped by a signal.", Exit::stopped);
  return verb_info_of(nlohmann::json::parse(*answer)).verbs;
}

fs::path torch_program() {
  const fs::path here = fs::read_symlink("/proc/self/exe").parent_path();
  const fs::path places[] = {here / "normlab-torch", here.parent_path() / "libexec/normlab/normlab-torch"};
  for (const fs::path& place : places)
    if (::access(place.c_str(), X_OK) == 0) return place;
  throw Error("normlab-torch",
              concat("this needs the part of normlab that is linked with libtorch, expected at ", places[0].string(),
                     " or ", places[1].string(), ". `make build` builds it, `make install` installs both."));
}

void quiet_barriers() {
  // By default a thread that waits for others spins for milliseconds, and takes the core from the one it waits for when
  // the machine is busy. Some 70 us are enough to be awake for the next operator. No result changes. What the user has
  // set stays.
  if (std::getenv("OMP_WAIT_POLICY") || std::getenv("GOMP_SPINCOUNT")) return;
  ::setenv("OMP_WAIT_POLICY", "passive", /*overwrite=*/1);
  ::setenv("GOMP_SPINCOUNT", "1000", /*overwrite=*/1);
}

void hand_over(char** argv) {
  const fs::path program = torch_program();
  quiet_barriers();
  ::execv(program.c_str(), argv);
  throw Error(program.string(), concat("cannot be started: ", std::strerror(errno), "."));
}

TrialSpeed measure_speed(const Config& config, int vocab_size, int jobs) {
  quiet_barriers();
  ChildProcess child({torch_program().string(), "speed"});
  child.write_line(nlohmann::json({{"config", to_toml(config)}, {"vocab_size", vocab_size}, {"jobs", jobs}}).dump());
  const auto answer = child.read_line();
  if (!answer) throw Error("speed", "stopped by a signal.", Exit::stopped);
  const auto out = nlohmann::json::parse(*answer);
  return {.seconds_of_step = out.at("seconds_of_step"), .flops_per_second = out.at("flops_per_second")};
}

}  // namespace normlab
