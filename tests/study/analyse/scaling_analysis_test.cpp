#include "normlab/study/analyse/scaling_analysis.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "normlab/base/error.h"
#include "normlab/base/text.h"
#include "normlab/study/present/scaling_json.h"
#include "normlab/study/present/scaling_report.h"
#include "normlab/study/present/scaling_tables.h"
#include "normlab/study/present/scaling_verdict.h"
#include "stats/draws.h"

namespace normlab {
namespace {

using ::testing::HasSubstr;

constexpr ScalingLaw base{.floor = 1.0, .a_params = 60, .b_tokens = 500, .exp_params = 0.4, .exp_tokens = 0.45};
constexpr FitOptions quick{.resamples = 100};

// Twelve runs of a scheme that makes `factor` times as much of its parameters and tokens.
void add_runs(ScalingData& data, const std::string& scheme, double factor, double noise) {
  NormalDraws normal(stream_key(41, scheme.size()));
  for (const double n_params : {2e4, 8e4, 3.2e5, 1.3e6})
    for (const double ratio : {5.0, 20.0, 80.0}) {
      const double n_tokens = ratio * n_params;
      data.runs.push_back({.scheme = scheme,
                           .size = concat(n_params, " ", ratio),
                           .n_params = n_params,
                           .n_tokens = n_tokens,
                           .loss = base.loss(factor * n_params, factor * n_tokens) * std::exp(noise * normal()),
                           .flops = 8 * n_params * n_tokens});
    }
}

// Curves of six batch sizes, each with a learning rate that is half as fast.
void add_batches(ScalingData& data, const std::string& scheme, double critical) {
  for (double batch = 500; batch <= 16000; batch *= 2)
    for (const double lr : {1e-3, 1e-2}) {
      ScalingRun run{
          .scheme = scheme, .size = "one", .n_params = 1e5, .n_tokens = 1e6, .loss = 2, .batch = batch, .lr = lr};
      const double steps_of_nat = 100 * (1 + critical / batch) * (lr < 5e-3 ? 2 : 1);
      for (int i = 0; i <= 300; ++i) run.curve.push_back({i * steps_of_nat / 100, 0.0, 5 - 0.01 * i});
      data.runs.push_back(run);
    }
}

TEST(ScalingAnalysis, AConstantFactorOfTwoSchemes) {
  ScalingData data;
  add_runs(data, "gpt+", 1, 0.002);
  add_runs(data, "angpt", 1.3, 0.002);
  const ScalingAnalysis analysis = analyse_scaling(data, quick);
  ASSERT_EQ(analysis.schemes.size(), 2u);
  EXPECT_NEAR(analysis.schemes[0].flops_per_param_token, 8, 1e-9);
  ASSERT_TRUE(analysis.shared);
  EXPECT_GT(analysis.shared->p_value, 0.05);
  ASSERT_EQ(analysis.projections.size(), 4u);
  const Estimate& factor = analysis.projections[0].advantage.compute_factor;
  EXPECT_LE(factor.interval.low, 1.69);  // 1.3 of both
  EXPECT_GE(factor.interval.high, 1.69);
  EXPECT_GT(factor.interval.low, 1.2);
  EXPECT_LT(analysis.projections[0].advantage.loss_difference.interval.high, 0);
  const std::vector<std::string> found = scaling_findings(analysis);
  EXPECT_THAT(found[0], HasSubstr("lower in 12 of 12"));
  EXPECT_THAT(found[1], HasSubstr("angpt is expected below the best gpt+"));
  EXPECT_THAT(found[2], HasSubstr("consistent with shared exponents"));
  EXPECT_THAT(found[3], HasSubstr("an extrapolation"));
  EXPECT_THAT(
      scaling_verdict(analysis),
      testing::MatchesRegex("angpt beats gpt\\+ in 12 pairs of runs of equal size and length: its loss is lower than "
                            "that of gpt\\+ by 0.[0-9]+ nats .*\\. Extrapolated to 100 times the compute of the "
                            "largest run, .*\\."));
  ASSERT_EQ(analysis.same_size.size(), 1u);
  EXPECT_NEAR(analysis.same_size[0].differences[0], base.loss(2.6e4, 1.3e5) - base.loss(2e4, 1e5), 0.03);

  const auto json = nlohmann::json::parse(scaling_json(analysis));
  EXPECT_EQ(json["schemes"][1]["scheme"], "angpt");
  EXPECT_EQ(json["schemes"][0]["intervals"]["floor"].size(), 2u);
  EXPECT_EQ(json["projections"][3]["extrapolated"], true);
  EXPECT_EQ(json["schemes"][0]["bootstrap"]["kind"], "residual");
  EXPECT_EQ(json["schemes"][0]["bootstrap"]["chosen_by_test"], true);
  EXPECT_GT(json["schemes"][0]["bootstrap"]["variance_test"]["p_value"], 0.2);
  std::vector<std::string> names;
  for (const auto& [name, content] : make_scaling_report(analysis, {"normlab", "fit"})) {
    names.push_back(name.string());
    if (name == "scaling.md" || name == "scaling.html") {
      EXPECT_THAT(content, HasSubstr("Intervals of angpt: residual bootstrap, because"));
    }
    EXPECT_THAT(content, testing::Not(HasSubstr("nan,")));
  }
  EXPECT_THAT(names, testing::IsSupersetOf({"charts/loss-compute.svg", "charts/scheme-against-scheme.svg",
                                            "charts/iso-gpt.svg", "charts/iso-angpt.svg", "charts/residuals-params.svg",
                                            "charts/residuals-tokens.svg", "points.csv", "fit.json", "scaling.md",
                                            "scaling.html"}));
}

TEST(ScalingAnalysis, OneSchemesCoefficientsStandAtTheTop) {
  ScalingData data;
  add_runs(data, "", 1, 0.001);
  data.runs[4].loss *= 1.5;
  const ScalingAnalysis analysis = analyse_scaling(data, quick);
  const auto json = nlohmann::json::parse(scaling_json(analysis));
  for (const char* name : {"floor", "a_params", "b_tokens", "exp_params", "exp_tokens"}) {
    ASSERT_TRUE(json[name].is_number()) << name;
    EXPECT_LE(json["intervals"][name][0], json[name]) << name;
    EXPECT_GE(json["intervals"][name][1], json[name]) << name;
  }
  EXPECT_THAT(analysis.notes.at(0), HasSubstr("off the law"));
  EXPECT_THAT(scaling_verdict(analysis), HasSubstr("The law fits 12 runs within"));
  EXPECT_THAT(scaling_verdict(analysis), HasSubstr("parameters on "));
}

TEST(ScalingAnalysis, ALawThatDoesNotDescribeTheRunsIsSaidToBeNone) {
  ScalingData data;
  add_runs(data, "", 1, 0.1);
  const ScalingAnalysis analysis = analyse_scaling(data, quick);
  EXPECT_THAT(analysis.notes, testing::Contains(HasSubstr("does not describe them")));
}

TEST(ScalingAnalysis, CriticalBatchOfTheBestRates) {
  ScalingData data;
  add_batches(data, "gpt+", 2000);
  add_batches(data, "angpt", 4000);
  const ScalingAnalysis analysis = analyse_scaling(data, quick);
  EXPECT_TRUE(analysis.schemes.empty());
  EXPECT_TRUE(coefficient_table(analysis).rows.empty());  // names without a value would be no table
  ASSERT_EQ(analysis.batches.size(), 10u);                // five losses of two schemes
  for (const BatchFit& each : analysis.batches) {
    const double expected = each.scheme == "gpt+" ? 2000 : 4000;
    EXPECT_NEAR(each.fit.law.critical(), expected, 0.01 * expected) << each.target;
    EXPECT_EQ(each.points.size(), 6u);
  }
  EXPECT_EQ(make_scaling_report(analysis, {"normlab"}).front().first, "charts/critical-batch.svg");
  EXPECT_THAT(scaling_json(analysis), HasSubstr("critical_batch_tokens"));
}

TEST(ScalingAnalysis, SaysWhyNothingCanBeFitted) {
  ScalingData data;
  add_runs(data, "gpt+", 1, 0.0);
  data.runs.resize(6);
  data.notes.push_back("row 7 is left out: it diverged");
  try {
    analyse_scaling(data, quick);
    ADD_FAILURE() << "not refused";
  } catch (const DataError& error) {
    EXPECT_THAT(error.what(), HasSubstr("got 6, expected at least 8"));
    EXPECT_THAT(error.what(), HasSubstr("row 7 is left out"));
  }
  // One scheme that cannot be fitted does not stop the other.
  add_runs(data, "angpt", 1, 0.0);
  const ScalingAnalysis analysis = analyse_scaling(data, quick);
  ASSERT_EQ(analysis.schemes.size(), 1u);
  EXPECT_EQ(analysis.schemes[0].scheme, "angpt");
  EXPECT_THAT(analysis.notes, testing::Contains(HasSubstr("[gpt+] too few points")));
}

}  // namespace
}  // namespace normlab
