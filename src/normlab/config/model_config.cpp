#include "normlab/config/model_config.h"

#include "normlab/base/error.h"
#include "normlab/base/text.h"

namespace normlab {

template <>
std::vector<std::string> enum_names<RopePairing>() {
  return {"interleaved", "half"};
}

template <>
std::vector<std::string> enum_names<Activation>() {
  return {"gelu", "gelu_tanh", "relu", "swiglu", "geglu"};
}

template <>
std::vector<std::string> enum_names<Positions>() {
  return {"learned", "sinusoidal", "rope", "sine"};
}
template <>
std::vector<std::string> enum_names<RopeScaling>() {
  return {"none", "linear", "llama3"};
}
template <>
std::vector<std::string> enum_names<InitRule>() {
  return {"nanogpt", "gpt2", "small"};
}

template <>
std::vector<std::string> enum_names<Kernels>() {
  return {"best", "fused", "composite"};
}

void list_fields(ModelConfig& c, FieldList& list) {
  list.section("model");
  list.integer("n_layers", c.n_layers, {.min = 1, .max = 1000}, "number of blocks");
  list.integer("n_heads", c.n_heads, {.min = 1, .max = 1024}, "query heads of each attention");
  list.integer("n_kv_heads", c.n_kv_heads, {.min = 0, .max = 1024}, "key and value heads; 0 = n_heads");
  list.integer("d_model", c.d_model, {.min = 1, .max = 1 << 20}, "width of the residual stream");
  list.integer("d_head", c.d_head, {.min = 0, .max = 1 << 16}, "channels of a head; 0 = d_model / n_heads");
  list.integer("d_ff", c.d_ff, {.min = 0, .max = 1 << 22}, "hidden width of the MLP; 0 = 4 d_model");
  list.integer("seq_len", c.seq_len, {.min = 1, .max = 1 << 24}, "window length in tokens (nanoGPT's block_size)");
  list.integer("window", c.window, {.min = 0, .max = 1 << 24},
               "keys that a query sees, its own the last of them; 0 = all before it")
      .read_if("translation.source=");
  list.integer("global_every", c.global_every, {.min = 0, .max = 1000},
               "every so many layers, one sees all keys (Gemma 2: 2, Gemma 3: 6); 0 = none does")
      .read_if("model.window!=0");
  list.choice(
      "activation", c.activation,
      "of the MLP; gelu is exact, gelu_tanh is GPT-2's, swiglu is up * silu(gate), geglu is up * gelu_tanh(gate)");
  list.choice("positions", c.positions, "position encoding; sine: sines in all columns, no cosines");
  list.choice("rope_pairing", c.rope_pairing, "RoPE rotates channels (2i, 2i + 1), interleaved, or (i, i + d/2), half")
      .read_if("model.positions=rope");
  list.real("rope_base", c.rope_base, {.min = 1.0, .open_min = true}, "base of RoPE's frequencies")
      .read_if("model.positions=rope");
  list.real("rope_base_local", c.rope_base_local, {.min = 0.0},
            "base in layers with a window, without scaling (Gemma 3); 0 = as in the others")
      .read_if("model.positions=rope and model.window!=0");
  list.choice("rope_scaling", c.rope_scaling,
              "for texts longer than trained on; linear: frequencies / factor; llama3: low frequencies only")
      .read_if("model.positions=rope");
  list.real("rope_factor", c.rope_factor, {.min = 1.0}, "by which scaling divides frequencies")
      .read_if("model.rope_scaling!=none");
  list.integer("rope_original_len", c.rope_original_len, {.min = 1, .max = 1 << 24},
               "llama3 scales waves longer than this, and by less those down to a quarter of it")
      .read_if("model.rope_scaling=llama3");
  list.flag("bias", c.bias, "biases in linear maps and LayerNorms");
  list.flag("tied_head", c.tied_head, "the output head is the token embedding").read_if("translation.source=");
  list.real("dropout", c.dropout, {.min = 0.0, .max = 0.99}, "rate after embedding, on attention and on each branch");
  list.real("mlp_dropout", c.mlp_dropout, {.min = 0.0, .max = 0.99}, "rate after the activation of the MLP");
  list.choice("init", c.init, "initialisation table; gpt2 differs from nanogpt in learned positions only")
      .read_if("model.init!=gpt2 or model.positions=learned")
      // Weights that are constrained start with norm 1, whatever their deviation.
      .read_if("norm.constraint=none or model.positions=learned or translation.source!=");
  list.choice("kernels", c.kernels,
              "fused: our kernels; composite: PyTorch's operators; best: fused if they support the model")
      .affects(Effect::execution);
  list.flag("checkpoint_activations", c.checkpoint_activations,
            "keep only the input of each block and compute the block again in backward: less memory, more time")
      .affects(Effect::execution)
      .may_change_on_resume();
}

void resolve_model(ModelConfig& c, const NormScheme& scheme) {
  FieldList list;  // what comes from another project's configuration was never checked
  list_fields(c, list);
  for (const Field& field : list.fields()) field.set(field.get());
  if (c.d_head == 0) {
    if (c.d_model % c.n_heads != 0)
      throw UsageError("model.d_model", concat("got ", c.d_model, ", expected a multiple of model.n_heads = ",
                                               c.n_heads, ". Change either, or set model.d_head."));
    c.d_head = c.d_model / c.n_heads;
  }
  if (c.n_kv_heads == 0) c.n_kv_heads = c.n_heads;
  if (c.n_heads % c.n_kv_heads != 0)
    throw UsageError("model.n_kv_heads", concat("got ", c.n_kv_heads, ", expected a divisor of model.n_heads = ",
                                                c.n_heads, ", so that each is shared by equally many queries."));
  if (c.d_ff == 0) c.d_ff = 4 * c.d_model;
  if (c.positions == Positions::rope && c.d_head % 2 != 0)
    throw UsageError("model.d_head", concat("RoPE rotates pairs of channels; got an odd d_head = ", c.d_head, "."));
  if (scheme.learn_p && scheme.p_sharing == PSharing::head &&
      (scheme.scope == QkScope::all_heads || c.n_kv_heads != c.n_heads))
    throw UsageError("norm.p_sharing", "a p for each head needs norm.scope=head and model.n_kv_heads = model.n_heads.");
  if (c.window > 0 && c.global_every == 1)
    throw UsageError("model.global_every",
                     "got 1, which lets every layer see all keys, with model.window > 0; expected 0 or 2 and above.");

  if (scheme.residual != Residual::add && c.positions != Positions::rope)
    throw UsageError("model.positions",
                     "norm.residual is a lerp, which needs embeddings of norm 1; positions that are added to them "
                     "change it. Set model.positions=rope.");
  if (scheme.gain_on == GainOn::both && scheme.gain == GainSharing::channel && scheme.order == QkOrder::before_rope &&
      c.positions == Positions::rope)
    throw UsageError("norm.order",
                     "a channel gain on both q and k is applied after the rotation. Set norm.order=after_rope.");
  if (c.d_head % scheme.qk_groups != 0)
    throw UsageError("norm.qk_groups",
                     concat("got ", scheme.qk_groups, ", expected a divisor of model.d_head = ", c.d_head, "."));

  const std::string reason = why_not_fused(c, scheme);
  if (c.kernels == Kernels::fused && !reason.empty())
    throw UsageError("model.kernels",
                     concat("the fused kernels do not support this model: ", reason, ". Use model.kernels=composite."));
  if (c.kernels == Kernels::best) c.kernels = reason.empty() ? Kernels::fused : Kernels::composite;
}

int window_of_layer(const ModelConfig& c, int layer) {
  return c.global_every > 0 && (layer + 1) % c.global_every == 0 ? 0 : c.window;
}

std::string why_not_fused(const ModelConfig& c, const NormScheme& scheme) {
  if (c.dtype != Precision::float32) return "train.dtype is bfloat16";
  if (scheme.qk != QkNorm::none && scheme.scope == QkScope::all_heads) return "norm.scope is all_heads";
  if (scheme.qk_groups > 1) return "norm.qk_groups is above 1";
  if (c.d_head > 256) return "model.d_head is above 256";
  // The kernel multiplies by the gain after the rotation, which only a gain of whole heads lets it do.
  if (scheme.gain == GainSharing::channel && c.positions == Positions::rope && scheme.order == QkOrder::before_rope)
    return "norm.gain is channel and norm.order before_rope";
  return {};
}

}  // namespace normlab
