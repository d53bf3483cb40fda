// normlab doctor: what this machine and this build have.
#include <ATen/Parallel.h>
#include <ATen/Version.h>
#include <torch/version.h>

#include <memory>

#include "normlab/base/text.h"
#include "normlab/cli/torch/verbs.h"
#include "normlab/data/dataset.h"
#include "normlab/kernels/isa.h"
#include "normlab/models/device.h"
#include "normlab/record/manifest.h"

namespace normlab {
namespace {

// "Intel(R) oneAPI Math Kernel Library Version ..." of libtorch's own description of itself.
std::string blas() {
  for (const std::string& line : split(at::get_mkl_version(), '\n'))
    if (!trim(line).empty()) return trim(line);
  return "unknown";
}

std::string where(const Dataset& dataset) {
  try {
    const auto path = locate_dataset(dataset.name);
    return path ? path->string() : "not found; it is fetched by pip when first used";
  } catch (const Error& error) {
    return error.what();
  }
}

nlohmann::ordered_json examine() {
  const Machine machine = this_machine();
  nlohmann::ordered_json out = {{"normlab", NORMLAB_VERSION},
                                {"libtorch", TORCH_VERSION},
                                {"blas", blas()},
                                {"cpu", machine.cpu},
                                {"kernels", concat("fused, ", isa_name())},
                                {"torch_instruction_set", at::get_cpu_capability()},
                                {"cores", machine.cores},
                                {"threads", at::get_num_threads()},
                                {"cuda", describe_cuda()},
                                {"device", concat(find_device("auto").str(), " (train.device = auto)")},
                                {"memory", si(static_cast<double>(machine.memory_bytes)) + "B"}};
  for (const Dataset& dataset : datasets()) out[concat("data ", dataset.name)] = where(dataset);
  return out;
}

}  // namespace

void add_doctor(CLI::App& app, Exit&) {
  auto* verb = add_torch_verb(app, "doctor");
  auto json = std::make_shared<bool>(false);
  verb->add_flag("--json", *json, "machine-readable output");
  verb->footer("Example:\n  normlab doctor --json");
  verb->callback([json] {
    const nlohmann::ordered_json found = examine();
    if (*json) return print_json(found);
    for (const auto& [key, value] : found.items()) {
      print_labelled(key, value.is_string() ? value.get<std::string>() : value.dump(), 24);
    }
  });
}

}  // namespace normlab
