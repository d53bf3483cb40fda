// Results of a study: reads the metrics, the last checkpoint's gains and the manifest of every trial.
#include "normlab/study/analyse/results.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <nlohmann/json.hpp>

#include "normlab/base/error.h"
#include "normlab/base/file.h"
#include "normlab/base/json.h"
#include "normlab/base/text.h"
#include "normlab/record/metrics_rows.h"
#include "normlab/record/quantities.h"
#include "normlab/record/run_dir.h"
#include "normlab/record/safetensors.h"
#include "normlab/study/run/tuning.h"

namespace normlab {
namespace {

using Json = nlohmann::ordered_json;
namespace fs = std::filesystem;

double number_in(const Json& row, const char* key, double otherwise) {
  const auto found = row.find(key);
  return found != row.end() && found->is_number() ? found->get<double>() : otherwise;
}

void add_loss(const MetricsRow& row, std::vector<EvalPoint>& curve) {
  const double loss = row.number("val_loss", std::nan(""));
  if (!std::isfinite(loss) || (!curve.empty() && row.step <= curve.back().step)) return;
  const double wall = row.number("train_seconds", 0);
  curve.push_back({row.step, loss, wall, row.number("train_cpu_seconds", wall)});
}

// What the layers of a probe's row say, "attn/layer03/max_logit"; names of heads have another part.
void add_attention(const MetricsRow& row, std::vector<AttentionPoint>& points) {
  constexpr std::string_view start = "attn/";
  const std::string_view logit = row_of(Quantity::max_logit).key, entropy = row_of(Quantity::relative_entropy).key;
  double most = -std::numeric_limits<double>::infinity(), sum = 0;
  int layers = 0;
  for (const MetricsRow::Value& value : row.values) {
    if (!value.key.starts_with(start) || !std::isfinite(value.number)) continue;
    const size_t slash = value.key.find('/', start.size());
    if (slash == std::string_view::npos) continue;
    const std::string_view what = value.key.substr(slash + 1);
    if (what == logit) most = std::max(most, value.number);
    if (what == entropy) sum += value.number, ++layers;
  }
  if (layers == 0 || !std::isfinite(most) || (!points.empty() && row.step <= points.back().step)) return;
  points.push_back({row.step, most, sum / layers});
}

void add_bleu(const MetricsRow& row, TrialResult& result) {
  const double dev = row.number("val_bleu", std::nan("")), test = row.number("test_bleu", std::nan(""));
  if (std::isfinite(dev)) result.bleus.push_back({row.step, dev});
  if (std::isfinite(test)) result.test_bleu = test;
}

std::vector<float> values_of(const TensorView& tensor) {
  if (tensor.dtype != Dtype::f32 || tensor.bytes == 0)
    throw DataError(tensor.name,
                    concat("got ", dtype_name(tensor.dtype), ", expected F32 values. The file is damaged."));
  std::vector<float> values(tensor.bytes / sizeof(float));
  std::memcpy(values.data(), tensor.data, tensor.bytes);
  return values;
}

// The value in use, from one that a checkpoint holds.
using Used = std::function<double(double stored)>;

// Of "qk_gain" of the model, or "layers.3.attn.qk_gain": the mean of what each layer uses.
std::vector<LayerValue> read_layers(const SafetensorsFile& file, const char* name, const Used& used) {
  std::vector<LayerValue> layers;
  for (const TensorView& tensor : file.tensors()) {
    if (!tensor.name.ends_with(name)) continue;
    const auto parts = split(tensor.name, '.');
    const auto layer = parts.size() > 1 ? parse_integer(parts[1]) : std::nullopt;
    const std::vector<float> values = values_of(tensor);
    double sum = 0;
    for (const float value : values) sum += used(static_cast<double>(value));
    layers.push_back({layer ? static_cast<int>(*layer) : -1, sum / static_cast<double>(values.size())});
  }
  std::sort(layers.begin(), layers.end(), [](const LayerValue& a, const LayerValue& b) { return a.layer < b.layer; });
  return layers;
}

void read_learned(const fs::path& run, const Config& config, TrialResult& result) {
  const auto checkpoint = RunDir::open(run).latest();
  if (!checkpoint) return;
  const SafetensorsFile file(checkpoint->path / "model.safetensors");
  const ModelConfig& model = config.model;
  const GainSizes sizes{model.d_head, model.n_heads, model.seq_len, model.d_model};
  result.gains = read_layers(file, "qk_gain", [&](double stored) { return used_gain(config.norm, stored, sizes); });
  result.p = read_layers(file, "qk_p", [](double raw) { return 1.0 + std::log1p(std::exp(raw)); });
}

std::string text_in(const Json& object, const char* key) {
  const auto found = object.find(key);
  if (found == object.end()) return "";
  return found->is_string() ? found->get<std::string>() : found->dump();
}

TrialResult load_trial(const Plan& plan, const Trial& trial) {
  TrialResult result{.variant = trial.variant, .fold = trial.fold, .seed = trial.seed};
  result.folder = trial.folder.lexically_relative(plan.folder).generic_string();
  try {
    result.record = read_trial(trial);
    require_same_trial(trial);  // a result of other settings is none of this study's
    read_metrics(trial.folder, result);
    if (is_finished(result) && result.curve.empty())
      throw DataError((trial.folder / "metrics.jsonl").string(), "has no evaluation of a finished trial.");
  } catch (const Error& error) {
    result.record.status = TrialStatus::damaged;
    result.record.message = error.what();
  }
  return result;
}

// Losses are in the plan already; what is missing is the cost.
void add_tuning(const Plan& plan, StudyResults& results) {
  for (const Trial& trial : tuning_plan(plan).trials) {
    const TrialRecord record = read_trial(trial);
    results.tuning_trials += record.ended();
    results.tuning_cpu_seconds += record.train_cpu_seconds;
  }
}

}  // namespace

void read_metrics(const fs::path& run, TrialResult& result) {
  const fs::path metrics = run / "metrics.jsonl";
  if (!fs::exists(metrics)) return;
  for_each_row(metrics, [&](const MetricsRow& row) {
    add_loss(row, result.curve);
    add_attention(row, result.attention);
    add_bleu(row, result);
  });
}

void add_provenance(Provenance& provenance, const fs::path& manifest) {
  if (!fs::exists(manifest)) return;
  const Json content = parse_json<Json>(read_file(manifest));
  if (!content.is_object() || !content.contains("sessions")) return;  // the trial's own reader complains
  for (const Json& session : content["sessions"]) {
    if (!session.is_object()) continue;
    const std::string started = text_in(session, "started");
    if (provenance.first_start.empty() || started < provenance.first_start) provenance.first_start = started;
    provenance.last_start = std::max(provenance.last_start, started);
    provenance.versions.insert(concat("normlab ", text_in(session, "version")));
    const std::string device = text_in(session, "device");
    provenance.kernels.insert(concat(text_in(session, "kernels"), " kernels",
                                     device.empty() || device == "cpu" ? "" : concat(" on ", device),
                                     ", threads a trial: ", text_in(session, "threads")));
    if (!session.contains("machine")) continue;
    const Json& machine = session["machine"];
    const double gigabytes = number_in(machine, "memory_bytes", 0) / 1e9;
    provenance.machines.insert(concat(text_in(machine, "cpu"), ", ", text_in(machine, "cores"), " cores, ",
                                      fixed(gigabytes, 0), " GB, ", text_in(machine, "system")));
  }
}

StudyResults load_results(const Plan& plan) {
  StudyResults results{.plan = plan, .trials = {}};
  if (plan.spec.tune.wanted()) add_tuning(plan, results);
  for (const Trial& trial : plan.trials) {
    results.trials.push_back(load_trial(plan, trial));
    TrialResult& result = results.trials.back();
    results.trials_cpu_seconds += result.record.train_cpu_seconds;
    try {
      if (result.record.status != TrialStatus::missing)
        add_provenance(results.provenance, trial.folder / "manifest.json");
    } catch (const Error& error) {
      result.record.status = TrialStatus::damaged;
      result.record.message = error.what();
    }
    if (!is_finished(result)) continue;
    try {
      read_learned(trial.folder, trial.config, result);
    } catch (const Error&) {
      ++results.without_gains;  // the losses stand without it
    }
  }
  return results;
}

bool is_finished(const TrialResult& trial) { return trial.record.status == TrialStatus::finished; }

double best_loss(const TrialResult& trial) {
  double best = trial.curve.front().loss;
  for (const EvalPoint& point : trial.curve) best = std::min(best, point.loss);
  return best;
}

}  // namespace normlab
