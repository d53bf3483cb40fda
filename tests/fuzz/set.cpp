// --set: every line of the input is one of `normlab train` and of `normlab compare`.
#include "fuzz/fuzzers.h"
#include "fuzz/input.h"
#include "normlab/study/run/plan.h"

namespace normlab {

void fuzz_set(const uint8_t* bytes, size_t size) {
  std::vector<Setting> settings;
  for (const std::string& line : split(text_of(bytes, size), '\n'))
    accepts([&] { settings.push_back(parse_setting(line)); });
  accepts([&] { resolve_config(settings); });
  accepts([&] { make_plan(read_study(settings), "no-such-study"); });
}

}  // namespace normlab
