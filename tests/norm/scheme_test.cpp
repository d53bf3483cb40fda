#include "normlab/norm/scheme.h"

#include <gmock/gmock.h>

#include <cmath>
#include <limits>
#include <set>

#include "normlab/base/error.h"
#include "normlab/base/text.h"

namespace normlab {
namespace {

constexpr double inf = std::numeric_limits<double>::infinity();

TEST(Catalogue, RowsAreNamedOnceAndExplained) {
  std::set<std::string> names;
  for (const NormScheme& row : catalogue()) {
    EXPECT_TRUE(names.insert(row.name).second) << row.name;
    EXPECT_FALSE(row.title.empty() || row.equation.empty() || row.source.empty()) << row.name;
    EXPECT_NO_THROW(check_scheme(row)) << row.name;
  }
}

TEST(Catalogue, UnknownNameGetsASuggestion) {
  EXPECT_THAT([] { find_scheme("qknrom"); }, testing::ThrowsMessage<UsageError>(testing::HasSubstr("'qknorm'")));
}

// README.md, docs/schemes.md and docs/translation.md name these rows.
TEST(Catalogue, TranslatorsRefuseThreeRows) {
  std::vector<std::string> refused;
  for (const NormScheme& row : catalogue())
    if (!why_no_translator(row).empty()) refused.push_back(row.name);
  EXPECT_THAT(refused, testing::ElementsAre("z-loss", "ngpt", "angpt"));
}

TEST(Scheme, FieldsRoundTripThroughText) {
  for (const NormScheme& row : catalogue()) {
    NormScheme from = row, to;
    FieldList a, b;
    list_fields(from, a);
    list_fields(to, b);
    for (const Setting& setting : parse_toml(to_toml(a), "row")) apply(b, setting);
    EXPECT_EQ(to_toml(a), to_toml(b)) << row.name;
  }
}

// What is changed in a row of the catalogue, and what the refusal speaks of.
struct Refusal {
  const char* row;
  std::vector<const char*> settings;
  const char* reason;
};

TEST(Scheme, RefusesWhatMakesNoSense) {
  const Refusal refusals[] = {
      {"none", {"norm.learn_p=true"}, "no p to learn"},
      {"lp", {"norm.learn_p=true", "norm.p=1"}, "starts above 1"},
      {"lp", {"norm.learn_p=true", "norm.p=inf"}, "starts above 1"},
      {"none", {"norm.gain_init=matched"}, "needs norm.qk=lp"},
      {"none", {"norm.sublayer=none", "norm.placement=post"}, "norm.sublayer is none"},
      {"none", {"norm.sublayer=none", "norm.placement=branch"}, "norm.sublayer is none"},
      {"ln-scaling", {"norm.placement=post"}, "enters a branch"},
      {"none", {"norm.residual=lerp_nu"}, "norm.sublayer=none"},
      {"ngpt", {"norm.sublayer=rms"}, "norm.sublayer=none"},
      {"angpt", {"norm.constraint=none"}, "unit rows"},
      {"angpt", {"norm.alpha_init=1.5"}, "above 0 to 1"},
      {"angpt", {"norm.alpha_init=sqrt(d_head)"}, "1/n_layers"},
      {"angpt", {"norm.stored_scale=1/n_layers"}, "1/sqrt(d_model)"},
      {"none", {"norm.logit_scale=1/n_layers"}, "1/sqrt(d_head)"},
      {"rms", {"norm.qk_groups=2"}, "norm.qk=lp"},
      {"grouped", {"norm.scope=all_heads"}, "norm.scope=head"},
      {"lp", {"norm.qk_affine=shared"}, "norm.qk_affine=none"},
      {"none", {"norm.gain_on=both"}, "no gain"},
      {"none", {"norm.gain_form=exp"}, "no gain"},
      {"cosine", {"norm.stored_scale=0.1"}, "norm.stored_scale=init"},
      {"cosine", {"norm.gain_init=-1"}, "above 0"},
      {"lp", {"norm.gain_max=3"}, "norm.gain_form=exp"},
      {"lp", {"norm.logit_scale=init"}, "1/sqrt(d_head)"},
      {"none", {"norm.stored_scale=0.1"}, "none of them"},
      {"lp", {"norm.stored_scale=sqrt(d_head)"}, "1/sqrt(d_model)"},
      {"ngpt", {"norm.embedding=fixnorm"}, "norm.embedding=none"},
      {"ngpt", {"norm.sigma_reparam=true"}, "Choose one"},
      {"lp", {"norm.qk_clip=10"}, "norm.qk=none"},
      {"qk-clip", {"norm.soft_cap=10"}, "Choose one"},
      {"qk-clip", {"norm.sigma_reparam=true"}, "size of the weights"},
  };
  for (const Refusal& refusal : refusals) {
    NormScheme scheme = find_scheme(refusal.row);
    FieldList list;
    list_fields(scheme, list);
    const auto set_and_check = [&] {
      for (const char* setting : refusal.settings) apply(list, parse_setting(setting));
      check_scheme(scheme);
    };
    EXPECT_THAT(set_and_check, testing::ThrowsMessage<UsageError>(testing::HasSubstr(refusal.reason)))
        << refusal.row << " " << refusal.settings.front();
  }
}

TEST(FactorFields, TakeTheirOwnRulesAndNumbers) {
  struct Refused {
    const char* key;
    std::vector<const char*> texts;
  };
  const Refused rows[] = {{"alpha_init", {"0", "-1", "1.1", "init", "matched"}},
                          {"gain_init", {"init", "1/n_layers", "1/sqrt(d_head)"}},
                          {"logit_scale", {"0", "-1", "init", "log2(L^2-L)"}},
                          {"stored_scale", {"0", "sqrt(d_head)", "matched"}}};
  for (const Refused& row : rows)
    for (const char* text : row.texts) {
      NormScheme scheme = find_scheme("ngpt");
      FieldList list;
      list_fields(scheme, list);
      EXPECT_THROW(apply(list, parse_setting(concat("norm.", row.key, "=", text))), UsageError)
          << row.key << " " << text;
      for (const FactorField& field : factor_fields())
        if (std::string(field.key) == row.key) scheme.*field.factor = *Factor::parse(text);
      EXPECT_THROW(check_scheme(scheme), UsageError) << row.key << " " << text;
    }
}

// Lengths and values of the QKNorm authors' configurations.
TEST(InitialGain, FollowsItsRules) {
  NormScheme scheme = find_scheme("qknorm");
  EXPECT_NEAR(initial_gain(scheme, {.d_head = 64, .length = 72}), 12.3197, 1e-4);
  EXPECT_NEAR(initial_gain(scheme, {.d_head = 64, .length = 79}), 12.5892, 1e-4);
  EXPECT_NEAR(initial_gain(scheme, {.d_head = 64, .length = 256}), 15.9944, 1e-4);
  scheme.gain_init = *Factor::parse("sqrt(d_head)");
  EXPECT_DOUBLE_EQ(initial_gain(scheme, {.d_head = 64, .length = 256}), 8.0);
  scheme.gain_init = *Factor::parse("2.5");
  EXPECT_DOUBLE_EQ(initial_gain(scheme, {.d_head = 64, .length = 256}), 2.5);
}

TEST(InitialGain, MatchedGivesP2ItsOwnGainAndOthersTheSameSpread) {
  NormScheme scheme = find_scheme("lp");
  scheme.gain_init = *Factor::parse("matched");
  scheme.p = 2.0;
  EXPECT_NEAR(initial_gain(scheme, {.d_head = 64, .length = 256}), 15.9944, 1e-4);
  // The large-d formula gain * (d m_p)^(2/p) / d, m_p = E|z|^p: within 4 % at d = 64 and p <= 4.
  for (double p : {1.0, 1.5, 2.5, 3.0, 3.5, 4.0}) {
    scheme.p = p;
    const double m = std::pow(2.0, p / 2) * std::tgamma((p + 1) / 2) / std::sqrt(M_PI);
    const double formula = 15.9944 * std::pow(64 * m, 2 / p) / 64;
    EXPECT_NEAR(initial_gain(scheme, {.d_head = 64, .length = 256}), formula, 0.04 * formula) << p;
  }
  scheme.p = inf;
  EXPECT_NEAR(initial_gain(scheme, {.d_head = 64, .length = 256}) / 15.9944, 0.102, 0.003);
}

TEST(UsedGain, UndoesTheWayAGainIsStored) {
  const GainSizes sizes{.d_head = 16, .n_heads = 4, .length = 64, .d_model = 64};
  EXPECT_DOUBLE_EQ(used_gain(find_scheme("qknorm"), 3.5, sizes), 3.5);
  EXPECT_DOUBLE_EQ(used_gain(find_scheme("ngpt"), 0.125, sizes), 1.0);  // stored 1/sqrt(64) stands for 1
  EXPECT_DOUBLE_EQ(used_gain(find_scheme("cosine"), std::log(10.0), sizes), 10.0);
  EXPECT_DOUBLE_EQ(used_gain(find_scheme("cosine"), 50.0, sizes), 100.0);
}

}  // namespace
}  // namespace normlab
