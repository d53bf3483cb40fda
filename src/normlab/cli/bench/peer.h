// A process of its own that trains the model of a row: a Python that runs bench/peer.py, or this program.
#pragma once

#include <memory>

#include "normlab/cli/child_process.h"
#include "normlab/cli/torch/verbs.h"
#include "normlab/config/config.h"

namespace normlab {

class Peer {
 public:
  // Starts `python` and has it build the model; UsageError when bench/peer.py does not know such a model.
  Peer(const std::string& python, const Config& config, bool compile, int threads);
  // The same for bench/ctranslate2_peer.py and generation by a model of GPT-2's shape.
  static std::unique_ptr<Peer> ctranslate2(const std::string& python, const Config& config, int threads);
  // Starts a command that has its model already.
  explicit Peer(const std::vector<std::string>& command);

  double step();  // seconds of one training step; 0 after a request to stop
  // Seconds of `texts` texts side by side, token by token.
  double generate(int prompt_tokens, int new_tokens, int texts);
  // The same for many steps in two halves, so that several processes can work at the same time.
  void start_steps(int count);
  double finish_steps();
  // What the process needed at most beyond its size before the model; nothing where a compiler is part of it.
  std::optional<int64_t> peak_bytes();

 private:
  nlohmann::json ask(const nlohmann::json& question);
  nlohmann::json answer();

  std::string python_;
  ChildProcess process_;
};

// The command of this program that answers as bench/peer.py does, for a model on one of our paths and one thread.
std::vector<std::string> own_server(const std::string& config, const std::string& scheme, const std::string& path);

}  // namespace normlab
