// The metrics of normlab score: one row each, from lines of text to statistics, score and signature.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "data/score_tokenizer.h"
#include "stats/bleu.h"
#include "stats/segments.h"

namespace normlab {

struct ScoredTexts {
  std::vector<std::string> output;
  std::vector<std::vector<std::string>> references;  // whole texts, each as long as the output
};

struct ScoreSettings {
  ScoreTokenizer tokenizer = score_tokenizers[0];
  BleuOptions bleu = {};
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
  MetricResult (*evaluate)(const ScoredTexts& texts, const ScoreSettings& settings);
};
extern const std::vector<ScoreMetric> score_metrics;

const ScoreMetric& find_score_metric(const std::string& key);  // UsageError for an unknown one

}  // namespace normlab
