// TOML: configurations of runs and of studies. What is accepted is written and read back to the same.
#include "fuzz/fuzzers.h"
#include "fuzz/input.h"
#include "normlab/study/run/plan.h"

namespace normlab {

void fuzz_toml(const uint8_t* bytes, size_t size) {
  std::vector<Setting> settings;
  if (!accepts([&] { settings = parse_toml(text_of(bytes, size), "input.toml"); })) return;

  Config config;
  if (accepts([&] { config = resolve_config(settings).config; })) {
    const MemoryFile stored(to_toml(config));
    Config again;
    require(accepts([&] { again = stored_config(stored.path()); }), "a stored configuration is read");
    require(to_toml(again) == to_toml(config), "a stored configuration is read back to the same");
  }
  StudySpec spec;
  if (accepts([&] { spec = read_study(settings); }) && accepts([&] { make_plan(spec, "no-such-study"); })) {
    StudySpec again;
    require(accepts([&] { again = read_study(parse_toml(to_toml(spec), "study.toml")); }), "a stored study is read");
    require(to_toml(again) == to_toml(spec), "a stored study is read back to the same");
  }
}

}  // namespace normlab
