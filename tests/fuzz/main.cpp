// One program for all fuzzers, so that they are linked once; the environment variable FUZZER names the one to run.
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "fuzz/fuzzers.h"

namespace normlab {
namespace {

struct Fuzzer {
  std::string_view name;
  void (*run)(const uint8_t* bytes, size_t size);
};
constexpr Fuzzer fuzzers[] = {
    {"bpe", fuzz_bpe},
    {"json", fuzz_json},
    {"jsonl", fuzz_jsonl},
    {"metrics", fuzz_metrics},
    {"points", fuzz_points},
    {"run", fuzz_run},
    {"safetensors", fuzz_safetensors},
    {"set", fuzz_set},
    {"text_lines", fuzz_text_lines},
    {"tokenizer_json", fuzz_tokenizer_json},
    {"tokenizers", fuzz_tokenizers},
    {"toml", fuzz_toml},
};

const Fuzzer& chosen_fuzzer() {
  const char* name = std::getenv("FUZZER");
  for (const Fuzzer& each : fuzzers)
    if (name && each.name == name) return each;
  std::fprintf(stderr, "FUZZER names no fuzzer; see tests/fuzz/main.cpp\n");
  std::exit(2);
}

}  // namespace
}  // namespace normlab

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  static const normlab::Fuzzer& fuzzer = normlab::chosen_fuzzer();
  fuzzer.run(bytes, size);
  return 0;
}
