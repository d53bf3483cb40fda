#include "normlab/cli/bench/peer.h"

#include <cmath>
#include <filesystem>

#include "normlab/base/text.h"
#include "normlab/cli/bench/bench.h"

namespace normlab {
namespace {

namespace fs = std::filesystem;

// In the source tree around the program, or where it was installed.
std::string peer_script(const std::string& name) {
  const fs::path program = fs::read_symlink("/proc/self/exe");
  for (fs::path folder = program.parent_path(); folder != folder.root_path(); folder = folder.parent_path())
    for (const char* place : {"bench", "share/normlab/bench"})
      if (fs::is_regular_file(folder / place / name)) return (folder / place / name).string();
  throw Error("--peer", concat("there is no bench/", name, " in any folder around ", program.string(), "."));
}

// The key whose value peer.py does not know; empty when it knows the model.
std::string unknown_to_peer(const Config& config) {
  const ModelConfig& model = config.model;
  const NormScheme& norm = config.norm;
  const bool normalised = norm.qk != QkNorm::none;
  if (normalised && norm.qk != QkNorm::lp) return "norm.qk";
  // It computes the rows none and lp, with any p, epsilon and initial gain.
  NormScheme known = find_scheme(normalised ? "lp" : "none"), ours = norm;
  known.name = norm.name, known.p = norm.p, known.qk_eps = norm.qk_eps, known.gain_init = norm.gain_init;
  FieldList theirs, wanted;
  list_fields(known, theirs);
  list_fields(ours, wanted);
  for (size_t i = 0; i < wanted.fields().size(); ++i)
    if (wanted.fields()[i].get() != theirs.fields()[i].get()) return wanted.fields()[i].key;
  if (model.n_kv_heads != model.n_heads) return "model.n_kv_heads";
  if (model.d_head * model.n_heads != model.d_model) return "model.d_head";
  if (model.activation != Activation::gelu) return "model.activation";
  if (model.positions != Positions::learned) return "model.positions";
  if (model.bias) return "model.bias";
  if (!model.tied_head) return "model.tied_head";
  if (config.train.accumulate != 1) return "train.accumulate";
  return {};
}

nlohmann::json description(const Config& config, bool compile, int threads) {
  const ModelConfig& model = config.model;
  const NormScheme& norm = config.norm;
  nlohmann::json out = {{"cmd", "build"},
                        {"n_layers", model.n_layers},
                        {"n_heads", model.n_heads},
                        {"d_model", model.d_model},
                        {"d_ff", model.d_ff},
                        {"seq_len", model.seq_len},
                        {"vocab_size", bench_vocab_size},
                        {"dropout", model.dropout},
                        {"batch_size", config.train.batch_size},
                        {"lr", config.optim.lr},
                        {"betas", {config.optim.beta1, config.optim.beta2}},
                        {"eps", config.optim.eps},
                        {"weight_decay", config.optim.weight_decay},
                        {"clip", config.optim.clip},
                        {"threads", threads},
                        {"compile", compile}};
  if (norm.qk == QkNorm::none) return out;
  out["p"] = format_number(norm.p);  // as text: JSON has no inf
  out["qk_eps"] = norm.qk_eps;
  out["gain"] = initial_gain(norm, {model.d_head, model.n_heads, model.seq_len});
  return out;
}

std::vector<std::string> command_for(const std::string& python, const Config& config) {
  if (const std::string key = unknown_to_peer(config); !key.empty())
    throw UsageError("--path", concat("bench/peer.py does not know this ", key,
                                      ". Choose --path fused composite, or another --config or --scheme."));
  return {python, peer_script("peer.py")};
}

}  // namespace

Peer::Peer(const std::string& python, const Config& config, bool compile, int threads)
    : python_(python), process_(command_for(python, config)) {
  ask(description(config, compile, threads));
}

Peer::Peer(const std::vector<std::string>& command) : python_(command.front()), process_(command) {}

std::unique_ptr<Peer> Peer::ctranslate2(const std::string& python, const Config& config, int threads) {
  auto peer = std::make_unique<Peer>(std::vector{python, peer_script("ctranslate2_peer.py")});
  peer->ask({{"cmd", "build_generator"},
             {"layers", config.model.n_layers},
             {"heads", config.model.n_heads},
             {"d_model", config.model.d_model},
             {"d_ff", config.model.d_ff},
             {"positions", config.model.seq_len},
             {"vocab", bench_vocab_size},
             {"threads", threads}});
  return peer;
}

// An empty object after a request to stop.
nlohmann::json Peer::ask(const nlohmann::json& question) {
  process_.write_line(question.dump());
  return answer();
}

nlohmann::json Peer::answer() {
  const auto line = process_.read_line();
  if (!line) return nlohmann::json::object();
  const auto reply = nlohmann::json::parse(*line, nullptr, /*allow_exceptions=*/false);
  if (!reply.is_object())
    throw Error("--peer", concat(python_, " answered '", *line, "', expected a line of JSON. Is it a Python?"));
  if (reply.contains("error")) throw Error("--peer", concat(python_, ": ", reply["error"].get<std::string>()));
  return reply;
}

double Peer::step() { return ask({{"cmd", "step"}}).value("seconds", 0.0); }
double Peer::generate(int prompt_tokens, int new_tokens, int texts) {
  return ask({{"cmd", "generate"}, {"prompt", prompt_tokens}, {"tokens", new_tokens}, {"texts", texts}})
      .value("seconds", 0.0);
}
void Peer::start_steps(int count) { process_.write_line(nlohmann::json{{"cmd", "step"}, {"count", count}}.dump()); }
double Peer::finish_steps() { return answer().value("seconds", 0.0); }

std::optional<int64_t> Peer::peak_bytes() {
  const nlohmann::json answer = ask({{"cmd", "memory"}});
  if (!answer.contains("bytes") || !answer["bytes"].is_number_integer()) return std::nullopt;
  return answer["bytes"].get<int64_t>();
}

std::vector<std::string> own_server(const std::string& config, const std::string& scheme, const std::string& path) {
  std::vector<std::string> command = {"/proc/self/exe", "bench", "study",  "--serve",
                                      "--config",       config,  "--path", path};
  if (!scheme.empty()) command.insert(command.end(), {"--scheme", scheme});
  return command;
}

}  // namespace normlab
