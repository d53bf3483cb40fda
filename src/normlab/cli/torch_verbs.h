// The verbs that run a model. They live in a second program, normlab-torch, linked with libtorch, which takes half a
// second to load; `normlab` hands them over with their arguments.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "normlab/cli/verb_info.h"
#include "normlab/config/config.h"
#include "normlab/study/run/cost.h"

namespace normlab {

struct TorchVerb {
  const char *name, *description;
};
std::span<const TorchVerb> torch_verbs();
// UsageError unless it is one of them.
const char* description_of(const std::string& verb);
bool is_torch_verb(const std::string& verb);
// With their options, as normlab-torch describes them.
std::vector<VerbInfo> torch_verb_infos();

// normlab-torch beside this program, or where it is installed; Error when it is missing.
std::filesystem::path torch_program();

// Sets how threads of normlab-torch wait for each other, in the environment that it will see.
void quiet_barriers();

// This process becomes normlab-torch with the same arguments; signals that are held stay so.
[[noreturn]] void hand_over(char** argv);

// How fast `jobs` trials at a time train on this machine: ten steps of each, by normlab-torch. Nothing is written.
TrialSpeed measure_speed(const Config& config, int vocab_size, int jobs);

}  // namespace normlab
