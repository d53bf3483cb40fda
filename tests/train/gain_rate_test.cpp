// optim.gain_lr: a multiple of the learning rate for the gains of queries and keys, and for nothing else.
#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include "normlab/train/stepper.h"
#include "recommended.h"

namespace normlab {
namespace {

using torch::Tensor;

constexpr double plain_rate = 1e-3, gain_multiple = 30.0;

AdamWSettings with_gain_lr(double gain_lr) {
  return {.beta1 = 0.9, .beta2 = 0.99, .eps = 1e-8, .weight_decay = 0.1, .gain_lr = gain_lr};
}

ModelConfig tiny_model(const NormScheme& scheme, Kernels kernels) {
  ModelConfig config = with_recommended({}, scheme);
  config.n_layers = 2;
  config.n_heads = 2;
  config.d_model = 16;
  config.seq_len = 8;
  config.dropout = 0.0;
  config.kernels = kernels;
  resolve_model(config, scheme);
  return config;
}

bool is_gain(const std::string& name) {
  for (const char* end : {"qk_gain", ".q_norm.weight", ".k_norm.weight"})
    if (name.ends_with(end)) return true;
  return false;
}

std::vector<Tensor> weights_of(const NamedTensors& parameters) {
  std::vector<Tensor> list;
  for (const auto& [name, tensor] : parameters) list.push_back(tensor.detach().clone());
  return list;
}

// One step at the plain rate and one with faster gains, from the same weights. Gives the number of gains.
template <class Model, class ModelBatch>
int check_first_step(const std::function<Model()>& make, const ModelBatch& batch, const std::string& what) {
  const std::vector<Tensor> before = weights_of(make().parameters());
  const auto after = [&](double gain_lr) {
    BasicStepper<Model, ModelBatch> stepper(make(), with_gain_lr(gain_lr));
    stepper.step({batch}, {.training = true}, plain_rate, 1.0);
    return stepper.model().parameters();
  };
  const NamedTensors plain = after(1.0), fast = after(gain_multiple);
  int gains = 0;
  for (size_t i = 0; i < before.size(); ++i) {
    const auto& [name, slow] = plain[i];
    if (!is_gain(name)) {
      EXPECT_TRUE(torch::equal(slow, fast[i].second)) << what << " " << name;
      continue;
    }
    ++gains;
    const Tensor near = slow - before[i], far = fast[i].second - before[i];
    EXPECT_GT(near.abs().max().item<double>(), 0.5 * plain_rate) << what << " " << name;
    // Each of the three values is rounded to half a unit in the last place.
    const double rounding =
        (1.0 + gain_multiple) * 1.2e-7 * (before[i].abs().max().item<double>() + gain_multiple * plain_rate);
    EXPECT_LE((far - gain_multiple * near).abs().max().item<double>(), rounding) << what << " " << name;
  }
  return gains;
}

Batch lm_batch() {
  torch::manual_seed(5);
  const Tensor text = torch::randint(0, 11, {4, 9}, torch::kInt64);
  return {text.slice(1, 0, 8).contiguous(), text.slice(1, 1).contiguous()};
}

TranslationBatch translation_batch() {
  torch::manual_seed(6);
  const OutputVocabulary outputs = make_output_vocabulary(std::vector<bool>(11, true));
  const Tensor text = torch::randint(3, 11, {4, 6}, torch::kInt64);
  return {.source = {torch::randint(3, 11, {4, 5}, torch::kInt64), torch::tensor({5, 4, 5, 3})},
          .inputs_bt = text.slice(1, 0, 5).contiguous(),
          .labels_bt = text.slice(1, 1).contiguous(),
          .outputs = outputs};
}

// On one thread: with two, the barriers of a busy machine take longer than these small steps.
class OneThread {
 public:
  OneThread() { at::set_num_threads(1); }
  ~OneThread() { at::set_num_threads(before_); }

 private:
  int before_ = at::get_num_threads();
};

int check_both_models(const NormScheme& scheme, Kernels kernels, const std::string& what) {
  const ModelConfig config = tiny_model(scheme, kernels);
  const int gains =
      check_first_step<DecoderLm, Batch>([&] { return DecoderLm(config, scheme, 11, 3); }, lm_batch(), what);
  if (!why_no_translator(scheme).empty()) return gains;
  const TranslatorShape shape{.vocab_size = 11, .encoder_layers = 2, .length_p975 = 6, .label_smoothing = 0.1};
  const int in_translator = check_first_step<EncoderDecoder, TranslationBatch>(
      [&] { return EncoderDecoder(config, scheme, shape, 3); }, translation_batch(), "translator " + what);
  // Two layers of a language model; two of an encoder and two of a decoder with two attentions each.
  EXPECT_EQ(in_translator, scheme.gain == GainSharing::model ? gains : 3 * gains) << what;
  return gains;
}

TEST(GainRate, OnlyGainsMoveFartherInTheFirstStep) {
  const OneThread one_thread;
  for (const NormScheme& row : catalogue())
    for (const Kernels kernels : {Kernels::composite, Kernels::fused}) {
      if (kernels == Kernels::fused && !why_not_fused(tiny_model(row, Kernels::best), row).empty()) continue;
      const int gains = check_both_models(row, kernels, row.name);
      const bool has_gains = (row.gain != GainSharing::none && row.learn_gain) || row.qk_affine != QkAffine::none;
      EXPECT_EQ(gains > 0, has_gains) << row.name;
    }
}

TEST(GainRate, GainsOfEverySharing) {
  const OneThread one_thread;
  for (const GainSharing sharing : {GainSharing::model, GainSharing::layer, GainSharing::head, GainSharing::channel})
    for (const GainForm form : {GainForm::plain, GainForm::exp})
      for (const Kernels kernels : {Kernels::composite, Kernels::fused}) {
        NormScheme scheme = find_scheme("lp");
        scheme.gain = sharing;
        scheme.gain_form = form;
        const std::string what = "sharing " + std::to_string(static_cast<int>(sharing));
        EXPECT_EQ(check_both_models(scheme, kernels, what), sharing == GainSharing::model ? 1 : 2);
      }
}

// After three steps from equal gradients, by either optimiser; roles without a multiple change no bit.
TEST(GainRate, FusedAndCompositeOptimisersAgree) {
  const auto after = [](bool fused, double gain_lr, bool with_roles) {
    AdamWSettings settings = with_gain_lr(gain_lr);
    settings.fused = fused;
    const Tensor weight = torch::tensor({{1.0F, -2.0F}}), gain = torch::tensor({3.0F}), norm = torch::tensor({3.0F});
    const Role gain_role = with_roles ? Role::qk_gain : Role::scale;
    AdamW optimizer({{"weight", weight}, {"gain", gain, gain_role}, {"norm", norm, Role::norm_gain}}, settings);
    for (int step = 1; step <= 3; ++step) {
      const auto g = static_cast<float>(step);
      optimizer.step({{torch::tensor({{0.5F * g, 1.0F}}), torch::tensor({-0.25F * g}), torch::tensor({-0.25F * g})}},
                     plain_rate, /*clip=*/1.0);
    }
    return std::vector{weight, gain, norm};
  };
  const auto fused = after(true, gain_multiple, true), composite = after(false, gain_multiple, true);
  for (size_t i = 0; i < fused.size(); ++i) EXPECT_TRUE(torch::allclose(fused[i], composite[i], 1e-6, 0.0)) << i;
  EXPECT_NEAR((fused[1] - 3.0).item<double>(), gain_multiple * (fused[2] - 3.0).item<double>(), 1e-5);
  for (const bool kernel : {true, false}) {
    const auto plain = after(kernel, 1.0, true), bare = after(kernel, gain_multiple, false);
    for (size_t i = 0; i < plain.size(); ++i) EXPECT_TRUE(torch::equal(plain[i], bare[i])) << i;
  }
}

}  // namespace
}  // namespace normlab
