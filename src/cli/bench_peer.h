// The same model in PyTorch: a Python process of its own that runs bench/peer.py, one for each row.
#pragma once

#include <memory>

#include "cli/child_process.h"
#include "cli/verbs.h"
#include "train/config.h"

namespace normlab {

class Peer {
 public:
  // Starts `python` and has it build the model; UsageError when bench/peer.py does not know such a model.
  Peer(const std::string& python, const Config& config, bool compile);

  double step();  // seconds of one training step; 0 after a request to stop
  // What the process needed at most beyond its size before the model; nothing where a compiler is part of it.
  std::optional<int64_t> peak_bytes();

 private:
  nlohmann::json ask(const nlohmann::json& question);

  std::string python_;
  ChildProcess process_;
};

}  // namespace normlab
