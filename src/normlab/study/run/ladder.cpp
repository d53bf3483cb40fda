#include "normlab/study/run/ladder.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "normlab/base/error.h"
#include "normlab/base/text.h"
#include "normlab/config/flops.h"

namespace normlab {
namespace {

constexpr std::array<std::string_view, 6> derived = {"model.n_layers", "model.d_model", "model.n_heads",
                                                     "model.d_head",   "model.d_ff",    "train.max_steps"};

Setting rung_setting(const char* key, const std::string& value) {
  return {.key = key, .values = {value}, .where = "the ladder", .is_list = false, .optional = true};
}

// The first value of each list where nothing else is chosen.
LadderConfig rung_of(const std::vector<Setting>& ladder, const std::vector<Setting>& chosen) {
  LadderConfig rung;
  FieldList list;
  list_fields(rung, list);
  for (const Setting& each : ladder) list.at(each.key, each.where).set(each.values.front());
  for (const Setting& each : chosen) apply(list, each);
  return rung;
}

std::vector<Setting> shape_of(const LadderConfig& rung) {
  const int64_t width = int64_t{1} * rung.depth * rung.width_per_layer;
  if (width % rung.head_width != 0)
    throw UsageError("ladder.head_width", concat("got ", rung.head_width, ", expected a divisor of ", rung.depth, " x ",
                                                 rung.width_per_layer, " = ", width, " channels."));
  return {rung_setting("model.n_layers", concat(rung.depth)), rung_setting("model.d_model", concat(width)),
          rung_setting("model.n_heads", concat(width / rung.head_width))};
}

struct Sized {
  Config config;  // with the rung's shape, all else as the run says
  double tokens = 0, compute = 0;
};
Sized sized(const LadderConfig& rung, const std::vector<Setting>& run) {
  std::vector<Setting> settings = run;
  for (const Setting& each : shape_of(rung)) settings.push_back(each);
  Sized out{.config = resolve_config(settings).config};
  const double weights = matrix_entries(out.config.model, /*vocab_size=*/0);
  out.tokens = rung.tokens > 0 ? static_cast<double>(rung.tokens) : rung.tokens_per_param * weights;
  out.compute = weights * out.tokens;
  return out;
}

}  // namespace

void list_fields(LadderConfig& c, FieldList& list) {
  list.section("ladder");
  list.integer("depth", c.depth, {.min = 1, .max = 1000}, "the dial: number of blocks; a list gives the sizes");
  list.integer("tokens", c.tokens, {.min = 0},
               "training tokens, the same for all sizes; a list gives the horizons; 0 = by tokens_per_param");
  list.real("tokens_per_param", c.tokens_per_param, {.min = 0.0, .open_min = true},
            "training tokens for each weight of the blocks' matrices; a list gives the horizons");
  list.integer("width_per_layer", c.width_per_layer, {.min = 1, .max = 1 << 16}, "d_model = depth times this")
      .is_shared_in_studies();
  list.integer("head_width", c.head_width, {.min = 1, .max = 1 << 16}, "n_heads = d_model over this")
      .is_shared_in_studies();
  list.real("batch_exponent", c.batch_exponent, {.min = 0.0, .max = 1.0},
            "train.batch_size grows as this power of compute, from the first rung")
      .is_shared_in_studies();
  list.real("lr_exponent", c.lr_exponent, {.min = 0.0, .max = 1.0},
            "optim.lr and optim.min_lr fall as this power of compute, from the first rung")
      .is_shared_in_studies();
  list.integer("evaluations", c.evaluations, {.min = 0, .max = 1000000},
               "evaluations per run, evenly spaced over its steps; 0 = use train.eval_every")
      .is_shared_in_studies();
}

bool is_ladder_key(const std::string& key) { return key.starts_with("ladder."); }

void check_ladder(const std::vector<Setting>& ladder) {
  LadderConfig rules;
  FieldList list;
  list_fields(rules, list);
  for (const Setting& each : ladder)
    if (each.is_list && list.at(each.key, each.where).in_study != InStudy::varies)
      throw UsageError(each.where,
                       concat(each.key, " is one rule for all sizes; got a list. Lists are allowed for ",
                              "ladder.depth, ladder.tokens, ladder.tokens_per_param, optim.lr and train.batch_size."));
  const auto has = [&](std::string_view key) {
    return std::any_of(ladder.begin(), ladder.end(), [&](const Setting& each) { return each.key == key; });
  };
  if (!ladder.empty() && !has("ladder.depth"))
    throw UsageError("ladder.depth", "is missing; expected the depths of the ladder, such as depth = [2, 3, 4, 6].");
  if (has("ladder.tokens") && has("ladder.tokens_per_param"))
    throw UsageError("ladder.tokens",
                     "and ladder.tokens_per_param both set the training length. Leave out one of them.");
}

std::vector<Setting> rung_settings(const std::vector<Setting>& ladder, const std::vector<Setting>& chosen,
                                   const std::vector<Setting>& run) {
  for (const Setting& each : run)
    if (std::find(derived.begin(), derived.end(), each.key) != derived.end())
      throw UsageError(each.where, concat(each.key, " is derived by the rules of [ladder]. Leave it out."));
  const LadderConfig rung = rung_of(ladder, chosen);
  const Sized here = sized(rung, run), first = sized(rung_of(ladder, {}), run);
  const double compute = here.compute / first.compute;
  const Config& config = here.config;
  const double batch = std::max(1.0, std::round(config.train.batch_size * std::pow(compute, rung.batch_exponent)));
  const double slower = std::pow(compute, -rung.lr_exponent);
  const double steps = std::ceil(here.tokens / (batch * config.train.accumulate * config.model.seq_len));

  std::vector<Setting> settings = shape_of(rung);
  settings.push_back(rung_setting("train.batch_size", concat(static_cast<int64_t>(batch))));
  settings.push_back(rung_setting("train.max_steps", concat(static_cast<int64_t>(steps))));
  settings.push_back(rung_setting("optim.lr", significant(config.optim.lr * slower, 4)));
  settings.push_back(rung_setting("optim.min_lr", significant(config.optim.min_lr * slower, 4)));
  if (rung.evaluations > 0)
    settings.push_back(
        rung_setting("train.eval_every", concat(std::max<int64_t>(1, static_cast<int64_t>(steps) / rung.evaluations))));
  return settings;
}

}  // namespace normlab
