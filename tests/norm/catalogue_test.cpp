// The constants of every row, frozen: a number changed by accident would only show in what a training finds.
#include <gtest/gtest.h>

#include <map>

#include "normlab/base/text.h"
#include "normlab/config/config.h"

namespace normlab {
namespace {

Config config_of(const std::string& scheme) {
  return resolve_config({{.key = "norm.scheme", .values = {scheme}, .where = "test", .is_list = false}}).config;
}

// What a row sets and recommends, as the keys in which a configuration with it differs from that of `none`.
const std::map<std::string, std::string> frozen = {
    {"none", ""},
    {"qknorm", "norm.qk=lp norm.gain=layer norm.gain_init=log2(L^2-L) norm.logit_scale=1"},
    {"lp", "norm.qk=lp norm.p=3 norm.gain=layer norm.gain_init=log2(L^2-L) norm.logit_scale=1"},
    {"rms", "norm.qk=rms norm.qk_eps=1e-06 norm.qk_affine=shared"},
    {"rms-gainless", "norm.qk=rms norm.qk_eps=1e-06 norm.logit_scale=0.1"},
    {"olmo2",
     "norm.sublayer=rms norm.placement=branch norm.qk=rms norm.scope=all_heads norm.qk_eps=1e-05 "
     "norm.qk_affine=own model.activation=swiglu model.positions=rope model.tied_head=false "
     "model.kernels=composite"},
    {"layernorm", "norm.qk=layer norm.qk_eps=1e-06 norm.qk_affine=shared"},
    {"cosine", "norm.qk=lp norm.gain=head norm.gain_init=10 norm.gain_form=exp norm.gain_max=100 norm.logit_scale=1"},
    {"grouped", "norm.qk=lp norm.qk_groups=2 norm.logit_scale=10 model.kernels=composite"},
    {"softcap", "norm.soft_cap=50 norm.output_soft_cap=30"},
    {"ssmax", "norm.gain=head norm.gain_init=0.43 norm.row_scale=log(n)"},
    {"qk-clip", "norm.qk_clip=100"},
    {"sigma-reparam", "norm.sigma_reparam=true"},
    {"z-loss", "norm.z_loss=0.0001"},
    {"scalenorm", "norm.sublayer=scale"},
    {"fixnorm", "norm.sublayer=scale norm.embedding=fixnorm"},
    {"dyt", "norm.sublayer=dyt norm.embedding=scaled model.init=small"},
    {"ln-scaling", "norm.sublayer_scale=1/sqrt(layer)"},
    {"gpt+",
     "norm.sublayer=rms norm.sublayer_eps=1e-06 norm.qk=rms norm.qk_eps=1e-06 norm.qk_affine=shared "
     "model.activation=swiglu model.positions=rope model.tied_head=false"},
    {"ngpt",
     "norm.sublayer=none norm.residual=lerp_unit norm.map_scale=s_uv norm.qk=lp norm.order=after_rope "
     "norm.gain=channel norm.gain_on=both norm.logit_scale=sqrt(d_head) norm.output_scale=s_z "
     "norm.stored_scale=1/sqrt(d_model) norm.constraint=unit model.activation=swiglu model.positions=rope "
     "model.tied_head=false optim.warmup_steps=0 optim.weight_decay=0"},
    {"angpt",
     "norm.sublayer=none norm.residual=lerp_nu norm.alpha_init=1/n_layers norm.map_scale=nu norm.qk=lp "
     "norm.order=after_rope norm.gain=channel norm.gain_on=both norm.logit_scale=sqrt(d_head) "
     "norm.output_scale=s_z norm.stored_scale=1/sqrt(d_model) norm.constraint=ball norm.constraint_axis=rows "
     "model.activation=swiglu model.positions=rope model.tied_head=false optim.warmup_steps=0 "
     "optim.weight_decay=0"},
};

const std::string frozen_none =
    "scheme=none sublayer=layer placement=pre sublayer_eps=1e-05 sublayer_scale=1 embedding=none residual=add "
    "alpha_init=0.05 alpha_sharing=channel map_scale=none qk=none p=2 learn_p=false p_sharing=layer qk_groups=1 "
    "scope=head order=before_rope qk_eps=1e-12 qk_affine=none gain=none gain_init=1 learn_gain=true "
    "gain_on=queries gain_form=plain gain_max=inf logit_scale=1/sqrt(d_head) row_scale=1 soft_cap=0 "
    "output_scale=none output_soft_cap=0 z_loss=0 stored_scale=init constraint=none constraint_axis=embedding "
    "qk_clip=0 sigma_reparam=false";

TEST(Catalogue, ConstantsOfEveryRow) {
  for (const NormScheme& row : catalogue()) {
    ASSERT_TRUE(frozen.contains(row.name)) << row.name << " is new: add it";
    std::vector<std::string> set;
    const auto any = [](const Field&) { return true; };
    for (const ConfigDifference& each : differences(config_of("none"), config_of(row.name), any))
      if (each.key != "norm.scheme") set.push_back(concat(each.key, "=", each.b));
    EXPECT_EQ(join(set, " "), frozen.at(row.name)) << row.name;
  }
  EXPECT_EQ(frozen.size(), catalogue().size());
}

TEST(Catalogue, ConstantsOfNone) {
  Config config = config_of("none");
  std::vector<std::string> values;
  const FieldList list = fields(config);
  for (const Field& field : list.fields())
    if (field.key.starts_with("norm.")) values.push_back(concat(field.key.substr(5), "=", field.get()));
  EXPECT_EQ(join(values, " "), frozen_none);
}

}  // namespace
}  // namespace normlab
