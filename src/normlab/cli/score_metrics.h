// The metrics of normlab score: one row each, from lines of text to statistics, score and signature.
#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "normlab/data/score_tokenizer.h"
#include "normlab/stats/bleu.h"
#include "normlab/stats/chrf.h"
#include "normlab/stats/segments.h"

namespace normlab {

struct ScoredTexts {
  std::vector<std::string> output;
  std::vector<std::vector<std::string>> references;  // whole texts, each as long as the output
};

using SplitLine = std::function<Words(std::string_view line)>;

struct ScoreSettings {
  SplitLine bleu_words = split_13a;
  std::string tokenizer = "13a";  // of BLEU, as the signature has it
  bool lowercase = false;         // of BLEU
  BleuOptions bleu = {};
  std::optional<int> chrf_word_order = {};  // unless the metric's own
  ChrfOptions chrf = {};
  bool chrf_lowercase = false, chrf_whitespace = false;
  TerWords ter = {};
};

struct MetricResult {
  std::string name;            // BLEU, chrF2, chrF2++, TER, multi-bleu
  std::string signature = {};  // sacreBLEU's items, without those every metric has
  StatisticRows rows = {};
  ScoreOfSums score;
  std::string line = {};  // what is printed after the signature, or all of it when there is none
  nlohmann::ordered_json details = nlohmann::ordered_json::object();  // what JSON says beside score and signature
};

struct ScoreMetric {
  const char* key;
  const char* group;  // of its options in the help; empty where it has none
  bool per_sentence;  // whether one line has a score
  MetricResult (*evaluate)(const ScoredTexts& texts, const ScoreSettings& settings);
};
extern const std::vector<ScoreMetric> score_metrics;

const ScoreMetric& find_score_metric(const std::string& key);  // UsageError for an unknown one

}  // namespace normlab
