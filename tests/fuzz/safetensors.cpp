// Safetensors: headers over data of a given size, and whole files.
#include <cstring>

#include "fuzz/fuzzers.h"
#include "fuzz/input.h"
#include "normlab/record/safetensors_header.h"

namespace normlab {
namespace {

void read_everything(const SafetensorsFile& file) {
  size_t sum = 0, bytes = 0;
  for (const TensorView& view : file.tensors()) {
    require(file.find(view.name) == &view, "a tensor is found by its name");
    for (size_t i = 0; i < view.bytes; ++i) sum += static_cast<size_t>(view.data[i]);
    bytes += view.bytes;
  }
  require(sum <= 255 * bytes, "every byte was read");
}

}  // namespace

// The first byte is the size of the data, the rest a header; or all of it is a file.
void fuzz_safetensors(const uint8_t* bytes, size_t size) {
  const std::string input = text_of(bytes, size);
  const MemoryFile as_it_is(input);
  accepts([&] { read_everything(SafetensorsFile(as_it_is.path())); });
  if (size == 0) return;

  const std::string header = input.substr(1);
  const std::vector<std::byte> data(bytes[0]);
  const bool sound = accepts([&] { parse_safetensors_header("input", header, data); });

  const uint64_t length = header.size();
  std::string content(sizeof length, '\0');
  std::memcpy(content.data(), &length, sizeof length);
  const MemoryFile file(content + header + std::string(data.size(), '\0'));
  const bool loads = accepts([&] { read_everything(SafetensorsFile(file.path())); });
  require(sound == loads, "a file loads exactly when its header is sound");
}

}  // namespace normlab
