// How settings become a configuration: the scheme's row, what it recommends, derived values, and no setting that has no
// effect.
#include <algorithm>
#include <set>

#include "normlab/base/error.h"
#include "normlab/base/text.h"
#include "normlab/config/config.h"
#include "normlab/data/utf8.h"

namespace normlab {

void require_utf8(const Setting& setting) {
  for (const std::string& value : setting.values)
    if (first_invalid_utf8(value))
      throw UsageError(setting.key, concat("the value of ", setting.where,
                                           " is not UTF-8, and could not be read back from the run's config.toml. "
                                           "Rename the file, or use a symbolic link."));
}

namespace {

// A run stored the kernels that it chose for its device; on another one they are chosen again.
bool moves_to_another_device(const std::vector<Setting>& settings) {
  const Setting *stored = nullptr, *kernels = nullptr, *wanted = nullptr;
  for (const Setting& setting : settings) {
    if (setting.key == "train.device") (setting.optional ? stored : wanted) = &setting;
    if (setting.key == "model.kernels") kernels = &setting;
  }
  return stored && wanted && stored->values != wanted->values && kernels && kernels->optional;
}

// Without regard to settings that nothing reads.
LoadedConfig complete(const std::vector<Setting>& settings) {
  LoadedConfig loaded;
  Config& config = loaded.config;
  std::string scheme = "none";
  std::set<std::string> configured;
  for (const Setting& setting : settings) {
    configured.insert(setting.key);
    if (setting.key == "norm.scheme" && !setting.is_list) scheme = setting.values.front();
  }
  config.norm = find_scheme(scheme);

  const FieldList list = fields(config);
  for (const Setting& setting : settings) {
    require_utf8(setting);
    apply(list, setting);
  }
  for (const auto& [key, value] : config.norm.recommended) {
    if (configured.contains(key) || list.at(key, scheme).get() == value) continue;
    list.at(key, scheme).set(value);
    loaded.notes.push_back(concat(key, " = ", value, ", as the scheme '", scheme, "' recommends"));
  }

  check_scheme(config.norm);
  if (moves_to_another_device(settings)) config.model.kernels = Kernels::best;
  const bool free_choice = config.model.kernels == Kernels::best;
  resolve_model(config);
  if (free_choice && config.model.kernels == Kernels::composite)
    loaded.notes.push_back(concat("model.kernels = composite: the fused kernels do not support this model, because ",
                                  why_not_fused(config)));
  if (config.data.fold >= config.data.folds)
    throw UsageError("data.fold", concat("got ", config.data.fold, ", expected 0 to ", config.data.folds - 1,
                                         " with data.folds = ", config.data.folds, "."));
  if (config.optim.min_lr > config.optim.lr)
    throw UsageError("optim.min_lr",
                     concat("got ", config.optim.min_lr, ", expected at most optim.lr = ", config.optim.lr, "."));
  if (config.optim.adamw_lr > 0.0 && config.optim.lr == 0.0)
    throw UsageError("optim.adamw_lr", concat("got ", config.optim.adamw_lr, " with optim.lr = 0, expected 0: AdamW's ",
                                              "rate follows the schedule of optim.lr. Set optim.lr above 0."));
  if (config.optim.decay_steps == 0) config.optim.decay_steps = config.train.max_steps;
  check_translation(config.translation, config.norm, config.optim);
  if (config.translation.wanted() && config.translation.encoder_layers == 0)
    config.translation.encoder_layers = config.model.n_layers;
  return loaded;
}

std::optional<LoadedConfig> try_complete(const std::vector<Setting>& settings) {
  try {
    return complete(settings);
  } catch (const UsageError&) {
    return std::nullopt;
  }
}

bool is_read(Config config, const std::string& key) {
  const FieldList list = fields(config);
  return list.is_read(list.at(key, key));
}

// The key has this value anyway, or the configuration is invalid without the setting: gpt+ with norm.qk=none must have
// norm.qk_affine=none.
bool is_accepted(const std::vector<Setting>& settings, const Field& field) {
  std::vector<Setting> others = settings;
  std::erase_if(others, [&](const Setting& each) { return each.key == field.key; });
  std::optional<LoadedConfig> without = try_complete(others);
  return !without || fields(without->config).value_of(field.key) == field.get();
}

// What its own file reads may be overridden from outside: a recipe of `lp` with --set norm.scheme=none keeps its p.
bool overridden_from_outside(const std::vector<Setting>& settings, const Setting& setting) {
  std::vector<Setting> same_source = settings;
  std::erase_if(same_source, [&](const Setting& each) { return source_of(each) != source_of(setting); });
  if (same_source.size() == settings.size()) return false;
  const std::optional<LoadedConfig> alone = try_complete(same_source);
  return alone && is_read(alone->config, setting.key);
}

// "it is read when norm.qk is lp, and norm.qk is none. Schemes that read it: qknorm, lp."
std::string what_would_make_it_count(const Config& config, const std::string& key) {
  Config copy = config;
  const FieldList list = fields(copy);
  const auto value_of = [&](const std::string& other) { return list.value_of(other); };
  std::vector<std::string> words, states;
  for (const Condition& condition : list.at(key, key).read_when) {
    if (condition.holds(value_of)) continue;
    words.push_back(condition.words());
    states.push_back(condition.state(value_of));
  }
  std::vector<std::string> schemes = schemes_that_read(config, key);
  if (schemes.size() == catalogue().size()) schemes.clear();
  return concat("it is read when ", join(words, ", and "), "; here ", join(states, ", "), ". ",
                schemes.empty() ? "" : concat("Schemes that read it: ", join(schemes, ", "), "."));
}

void refuse_settings_without_effect(const std::vector<Setting>& settings, LoadedConfig& loaded) {
  const FieldList list = fields(loaded.config);
  for (size_t i = 0; i < settings.size(); ++i) {
    const Setting& setting = settings[i];
    const Field& field = list.at(setting.key, setting.where);
    const bool replaced = std::any_of(settings.begin() + static_cast<ptrdiff_t>(i) + 1, settings.end(),
                                      [&](const Setting& later) { return later.key == setting.key; });
    if (replaced || setting.optional || list.is_read(field) || is_accepted(settings, field)) continue;
    const std::string reason = what_would_make_it_count(loaded.config, setting.key);
    if (!overridden_from_outside(settings, setting))
      throw UsageError(setting.where, concat(setting.key, " = ", field.get(), " has no effect: ", reason,
                                             reason.ends_with(' ') ? "Change that, or leave it out."
                                                                   : " Choose one, or leave it out."));
    loaded.notes.push_back(concat(setting.where, ": ", setting.key, " has no effect: ", trim(reason)));
  }
}

}  // namespace

bool is_cpu(const std::string& device) { return device == "cpu" || device == "auto"; }

std::string why_not_fused(const Config& config) {
  if (!is_cpu(config.train.device)) return concat("train.device is ", config.train.device);
  return why_not_fused(config.model, config.norm);
}

void resolve_model(Config& config) {
  if (!is_cpu(config.train.device) && config.model.kernels == Kernels::fused)
    throw UsageError("model.kernels", concat("the fused kernels run on the CPU only: ", why_not_fused(config),
                                             ". Use model.kernels=composite."));
  if (!is_cpu(config.train.device)) config.model.kernels = Kernels::composite;
  resolve_model(config.model, config.norm);
}

std::vector<std::string> schemes_that_read(const Config& config, const std::string& key) {
  std::vector<std::string> names;
  for (const NormScheme& row : catalogue()) {
    Config with_row = config;
    with_row.norm = row;
    const FieldList list = fields(with_row);
    for (const auto& [recommended, value] : row.recommended) list.at(recommended, row.name).set(value);
    if (list.is_read(list.at(key, key))) names.push_back(row.name);
  }
  return names;
}

Config stored_config(const std::filesystem::path& file) {
  return resolve_config(optional_settings(read_toml(file.string()))).config;
}

LoadedConfig resolve_config(const std::vector<Setting>& settings) {
  LoadedConfig loaded = complete(settings);
  refuse_settings_without_effect(settings, loaded);
  return loaded;
}

}  // namespace normlab
