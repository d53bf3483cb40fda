// `normlab check` of a run and the reader of trials, with every small file of the folder taken from the input.
#include <cstring>
#include <fstream>

#include "fuzz/fuzzers.h"
#include "fuzz/input.h"
#include "normlab/record/run_dir.h"
#include "normlab/study/analyse/check.h"
#include "normlab/study/run/trial.h"
#include "sandbox.h"

namespace normlab {

void fuzz_run(const uint8_t* bytes, size_t size) {
  static const TemporaryFolder run;
  constexpr const char* names[] = {"metrics.jsonl",
                                   "trial.json",
                                   "checkpoints/step-000010/state.json",
                                   "manifest.json",
                                   "config.toml",
                                   "checkpoints/step-000010/tokenizer.json",
                                   "checkpoints/step-000010/SHA256SUMS"};
  std::filesystem::create_directories(run / "checkpoints/step-000010");
  const auto parts = parts_of(bytes, size, std::size(names));
  for (size_t i = 0; i < parts.size(); ++i) std::ofstream(run / names[i], std::ios::binary) << parts[i];

  accepts([&] { check_path(run.path()); });
  accepts([&] { RunDir::open(run.path()).checkpoints(); });
  accepts([&] {
    const TrialRecord record = read_trial({.number = 1, .config = {}, .folder = run.path()});
    name_of(record.status);
  });
}

}  // namespace normlab
