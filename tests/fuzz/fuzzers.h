// The fuzzers: each tries one input and ends the program on a finding.
#pragma once

#include <cstddef>
#include <cstdint>

namespace normlab {

void fuzz_bpe(const uint8_t* bytes, size_t size);
void fuzz_json(const uint8_t* bytes, size_t size);
void fuzz_jsonl(const uint8_t* bytes, size_t size);
void fuzz_metrics(const uint8_t* bytes, size_t size);
void fuzz_points(const uint8_t* bytes, size_t size);
void fuzz_run(const uint8_t* bytes, size_t size);
void fuzz_safetensors(const uint8_t* bytes, size_t size);
void fuzz_set(const uint8_t* bytes, size_t size);
void fuzz_text_lines(const uint8_t* bytes, size_t size);
void fuzz_tokenizer_json(const uint8_t* bytes, size_t size);
void fuzz_tokenizers(const uint8_t* bytes, size_t size);
void fuzz_toml(const uint8_t* bytes, size_t size);

}  // namespace normlab
