// normlab bench: which model a row is about, and what it works on.
#include <algorithm>
#include <filesystem>

#include "normlab/base/random.h"
#include "normlab/base/text.h"
#include "normlab/cli/bench/bench.h"

namespace normlab {
namespace {

struct NamedSize {
  const char* name;
  const char* toml;
};
constexpr NamedSize sizes[] = {
    // The model of the Lp-QKNorm paper.
    {"L", "[model]\nn_layers = 6\nn_heads = 6\nd_model = 384\nseq_len = 256\n[train]\nbatch_size = 16\n"},
    // nanoGPT's CPU model.
    {"S", "[model]\nn_layers = 4\nn_heads = 4\nd_model = 128\nseq_len = 64\n[train]\nbatch_size = 12\n"},
};

// Of a recipe only the model counts, whichever scheme takes the place of its own.
std::vector<Setting> settings_of(const std::string& config) {
  for (const NamedSize& size : sizes)
    if (config == size.name) return parse_toml(size.toml, config);
  if (config.find('\n') != std::string::npos) return optional_settings(parse_toml(config, "bench"));
  if (!std::filesystem::exists(config))
    throw UsageError("--config", concat("got '", config, "', expected L, S or an existing recipe file."));
  return optional_settings(read_toml(config));
}

Setting setting(std::string key, std::string value) {
  return {.key = std::move(key), .values = {std::move(value)}, .where = "--scheme", .is_list = false};
}

}  // namespace

void BenchOptions::add_to(CLI::App& verb, const std::vector<std::string>& known_paths) {
  verb.add_option("--scheme", schemes, "one or more schemes, with p after a colon: none qknorm lp:2.5 lp:inf")
      ->type_name("NAME[:P]");
  add_measuring_to(verb, known_paths);
}

void BenchOptions::add_measuring_to(CLI::App& verb, const std::vector<std::string>& known_paths) {
  verb.add_option("--path", paths, concat("one or more of ", join(known_paths, ", ")))
      ->check(CLI::IsMember(known_paths))
      ->type_name("PATH");
  verb.add_option("--threads", threads, "threads, 0 for all cores")->check(whole_number(0, 4096))->type_name("N");
  verb.add_option("--repeat", repeat, "repetitions of each row; default: about 15 s per config, 5 to 50")
      ->check(whole_number(1, 1000000))
      ->type_name("N");
  verb.add_flag("--json", json, "machine-readable output");
}

void BenchOptions::add_configs_to(CLI::App& verb) {
  verb.add_option("-c,--config", configs, "one or more of L, S and recipe files; default L S")->type_name("L|S|FILE");
}

std::vector<int64_t> random_tokens(int64_t count, uint64_t stream) {
  std::vector<int64_t> tokens(static_cast<size_t>(count));
  for (size_t i = 0; i < tokens.size(); ++i)
    tokens[i] = static_cast<int64_t>(draw_below(stream_key(stream), i, bench_vocab_size));
  return tokens;
}

Config bench_config(const std::string& config, const std::string& scheme, const std::string& path) {
  std::vector<Setting> settings = settings_of(config);
  if (!scheme.empty()) {
    std::erase_if(settings, [](const Setting& s) { return s.key.starts_with("norm."); });
    const size_t colon = scheme.find(':');
    const std::string name = scheme.substr(0, colon);
    settings.push_back(setting("norm.scheme", name));
    if (colon != std::string::npos) {
      if (find_scheme(name).qk != QkNorm::lp)
        throw UsageError("--scheme", concat("got '", scheme, "', but the scheme '", name, "' has no p."));
      settings.push_back(setting("norm.p", scheme.substr(colon + 1)));
    }
  }
  settings.push_back(setting("model.kernels", path));
  return resolve_config(settings).config;
}

std::string scheme_label(const std::string& scheme, const NormScheme& norm) {
  if (!scheme.empty()) return scheme;
  return norm.p == find_scheme(norm.name).p ? norm.name : concat(norm.name, ":", norm.p);
}

}  // namespace normlab
