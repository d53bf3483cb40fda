#include "normlab/record/place.h"

#include "normlab/base/text.h"

namespace normlab {
namespace {

struct StackRow {
  const char *key, *description;
};
constexpr StackRow stack_rows[] = {
    {"layer", "layer"}, {"encoder", "encoder layer"}, {"decoder", "decoder layer"}, {"cross", "cross-attention layer"}};

}  // namespace

const char* name_of(Stack stack) { return stack_rows[static_cast<size_t>(stack)].key; }

std::string key_of(Place place) { return concat(name_of(place.stack), place.layer < 10 ? "0" : "", place.layer); }

std::string describe(Place place) {
  return concat(stack_rows[static_cast<size_t>(place.stack)].description, " ", place.layer);
}

}  // namespace normlab
