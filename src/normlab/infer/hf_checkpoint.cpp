#include "normlab/infer/hf_checkpoint.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "normlab/base/error.h"
#include "normlab/base/file.h"
#include "normlab/base/json.h"
#include "normlab/base/text.h"

namespace normlab {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

json read_object(const fs::path& path) {
  if (!fs::exists(path))
    throw DataError(path.string(), "is missing. Expected the folder of a Hugging Face checkpoint.");
  json content = parse_json(read_file(path));
  if (!content.is_object()) throw DataError(path.string(), "is not a JSON object.");
  return content;
}

// Its weights: model.safetensors, or the shards that model.safetensors.index.json lists.
class ShardFiles {
 public:
  explicit ShardFiles(const fs::path& folder) : folder_(folder) {
    const fs::path index = folder / "model.safetensors.index.json", single = folder / "model.safetensors";
    if (fs::exists(index))
      read_index(index);
    else if (fs::exists(single))
      add(single);
    else
      throw DataError(folder.string(), "has neither model.safetensors nor model.safetensors.index.json.");
  }

  TensorView at(const std::string& name) const {
    const auto file = file_of_.find(name);
    if (file == file_of_.end()) throw DataError(folder_.string(), concat("tensor '", name, "' is missing."));
    return file->second->at(name);
  }
  std::vector<std::string> names() const {
    std::vector<std::string> names;
    for (const auto& [name, file] : file_of_) names.push_back(name);
    return names;
  }

 private:
  void add(const fs::path& path) {
    const auto file = std::make_shared<const SafetensorsFile>(path);
    for (const TensorView& tensor : file->tensors()) file_of_[tensor.name] = file;
  }

  void read_index(const fs::path& index) {
    const json content = read_object(index);
    if (!content.contains("weight_map") || !content["weight_map"].is_object())
      throw DataError(index.string(), "has no \"weight_map\".");
    std::set<std::string> shards;
    for (const auto& [name, shard] : content["weight_map"].items()) {
      const std::string file = shard.is_string() ? shard.get<std::string>() : "";
      if (file.empty() || file.find('/') != std::string::npos)
        throw DataError(index.string(), concat("the file of '", name, "' is ", shard.dump(), "; expected a name."));
      shards.insert(file);
    }
    for (const std::string& shard : shards) {
      if (!fs::exists(folder_ / shard))
        throw DataError((folder_ / shard).string(), concat("is missing; ", index.filename().string(), " lists it."));
      add(folder_ / shard);
    }
    for (const auto& [name, shard] : content["weight_map"].items())
      if (!file_of_.contains(name))
        throw DataError((folder_ / shard.get<std::string>()).string(), concat("has no tensor '", name, "'."));
  }

  fs::path folder_;
  std::map<std::string, std::shared_ptr<const SafetensorsFile>> file_of_;
};

// Masks and frequencies that older checkpoints store, and a head that is tied to the embedding.
bool is_ignored(const std::string& name, bool tied) {
  return name.ends_with(".attn.bias") || name.ends_with(".attn.masked_bias") ||
         name.ends_with(".rotary_emb.inv_freq") || (tied && name == "lm_head.weight");
}

}  // namespace

const std::vector<std::string>& hf_model_types() {
  static const std::vector<std::string> types = {"gemma2", "gemma3_text", "gpt2", "llama", "olmo2", "qwen3"};
  return types;
}

HfModel read_hf_model(const fs::path& folder) {
  const fs::path config_file = folder / "config.json";
  const json config = read_object(config_file);
  const std::string type = config.contains("model_type") && config["model_type"].is_string()
                               ? config["model_type"].get<std::string>()
                               : "not named";
  const auto& types = hf_model_types();
  if (std::find(types.begin(), types.end(), type) == types.end())
    throw DataError(config_file.string(),
                    concat("the model_type is ", type, "; supported are ", join(types, ", "), "."));
  const Importer& importer = find_importer(type);
  const ImportedShape shape = read_shape(importer, config.dump());
  const ShardFiles shards(folder);
  TensorSource source{.where = folder.string(), .names = {}, .at = {}};
  // The first GPT-2 files leave the model's name out.
  const std::vector<std::string> names = shards.names();
  const bool bare = type == "gpt2" && std::find(names.begin(), names.end(), "wte.weight") != names.end();
  const std::string omitted = bare ? "transformer." : "";
  source.at = [&](const std::string& name) {
    return shards.at(name.starts_with(omitted) ? name.substr(omitted.size()) : name);
  };
  for (const std::string& name : names)
    if (!is_ignored(name, shape.model.tied_head)) source.names.push_back(omitted + name);
  return {type, shape, import_model(importer, shape, source)};
}

Tokenizer read_hf_tokenizer(const fs::path& folder, int vocab_size) {
  const fs::path file = folder / "tokenizer.json";
  if (!fs::exists(file))
    throw DataError(file.string(),
                    "is missing: save the tokenizer of the model in this form, by tokenizers or transformers.");
  const Tokenizer tokenizer = Tokenizer::read_subwords(file);
  if (tokenizer.vocab_size() > vocab_size)
    throw DataError(file.string(), concat("has ids up to ", tokenizer.vocab_size() - 1, ", the model ", vocab_size,
                                          " rows: they do not belong together."));
  return tokenizer.with_vocab_size(vocab_size);
}

}  // namespace normlab
