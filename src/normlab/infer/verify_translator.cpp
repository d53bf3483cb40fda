// A translator against the QKNorm authors' code, down to the hypotheses of its beam search.

#include "normlab/base/error.h"
#include "normlab/base/text.h"
#include "normlab/infer/import_translation.h"
#include "normlab/infer/verify_checks.h"
#include "normlab/models/beam_search.h"
#include "normlab/models/weights.h"
#include "normlab/train/stepper.h"

namespace normlab {
namespace {

using torch::Tensor;

constexpr int64_t padding = 0;
constexpr int64_t extra_symbols = 50;

class TranslatorVerification {
 public:
  TranslatorVerification(const SafetensorsFile& file, const std::string& kernels, const StopToken& stop)
      : file_(file),
        stop_(stop),
        imported_(read_translator(reference_metadata(file, "config"), kernels)),
        model_(import_translator(imported_, file, "weights.")),
        parts_(translator_parts(imported_, model_)),
        batch_(read_batch()) {}

  std::vector<Check> run() {
    const Tensor expected = load_tensor(file_.at("expect.logits")).index_select(1, batch_.outputs.ids_n);
    add("logits", model_.logits(batch_, Pass{}), expected, logits_bound);
    const auto words = static_cast<double>(batch_.words());
    compare("words", torch::tensor({words}), "expect.num_words", 0.0);
    compare("unsmoothed loss", model_.loss_sum(batch_, Pass{}, 0.0), "expect.nll_loss", logits_bound);
    const Tensor loss = model_.loss_sum(batch_, Pass{}, imported_.shape.label_smoothing) / words;
    compare("loss", loss, "expect.loss", logits_bound);
    loss.backward();
    for (const TensorPart& part : parts_)
      add("grad " + part.ours, tensor(part.ours).grad(), theirs("expect.grads.", part), gradient_bound);
    for (int64_t i = 0; file_.find(concat("expect.beam.", i, ".symbols")); ++i) beam(i);
    if (file_.find("expect.losses")) ten_steps();
    return checks_;
  }

 private:
  // All but padding and begin, or what the file's mask allows.
  OutputVocabulary read_outputs() const {
    std::vector<bool> allowed(static_cast<size_t>(imported_.shape.vocab_size), true);
    allowed[0] = allowed[1] = false;
    if (imported_.mask_by_language) {
      const Tensor mask = load_tensor(file_.at("inputs.logit_mask"));
      for (size_t id = 0; id < allowed.size(); ++id) allowed[id] = mask[static_cast<int64_t>(id)].item<int64_t>() == 1;
    }
    return make_output_vocabulary(allowed);
  }

  TranslationBatch read_batch() const {
    const int64_t vocab_size = imported_.shape.vocab_size;
    const Tensor source = load_ids(file_, "inputs.src", vocab_size), inputs = load_ids(file_, "inputs.tgt", vocab_size),
                 targets = load_ids(file_, "inputs.targets", vocab_size);
    if (inputs.sizes() != targets.sizes() || source.size(0) != inputs.size(0))
      throw DataError(file_.path().string(), "inputs.src, inputs.tgt and inputs.targets do not go together.");
    const OutputVocabulary outputs = read_outputs();
    const Tensor labels = outputs.place_v.index_select(0, targets.flatten()).view_as(targets);
    return {.source = {source, source.ne(padding).sum(1), language("inputs.src_lang")},
            .inputs_bt = inputs,
            .labels_bt = labels.masked_fill(targets.eq(padding), -1),
            .target_language = language("inputs.tgt_lang"),
            .outputs = outputs};
  }

  int64_t language(const std::string& key) const {
    const Tensor value = load_tensor(file_.at(key));
    const int64_t id = value.numel() == 1 ? value.item<int64_t>() : -1;
    if (id < 0 || id >= imported_.shape.n_languages)
      throw DataError(file_.path().string(), concat("'", key, "' is not the number of a language."));
    return id;
  }

  Tensor tensor(const std::string& name) {
    for (auto& [own, value] : model_.parameters())
      if (own == name) return value;
    return {};
  }

  Tensor theirs(const std::string& prefix, const TensorPart& part) const {
    return rows_of(load_tensor(file_.at(prefix + part.theirs)), part);
  }

  void add(const std::string& name, const Tensor& got, const Tensor& expected, double bound) {
    checks_.push_back(compare_tensors(file_, name, got, expected, bound));
  }
  void compare(const std::string& name, const Tensor& got, const std::string& key, double bound) {
    add(name, got, load_tensor(file_.at(key)), bound);
  }

  // Their search gives all sentences of a batch but the longest one symbol more.
  std::vector<int64_t> limits() const {
    const Tensor& lengths = batch_.source.lengths_b;
    const int64_t longest = lengths.max().item<int64_t>();
    std::vector<int64_t> out;
    for (int64_t i = 0; i < lengths.size(0); ++i) {
      const int64_t length = lengths[i].item<int64_t>();
      out.push_back(length + extra_symbols + (length < longest ? 1 : 0));
    }
    return out;
  }

  void beam(int64_t sentence) {
    if (hypotheses_.empty()) {
      const BeamTask task{.source = batch_.source,
                          .target_language = batch_.target_language,
                          .outputs = batch_.outputs,
                          .limits = limits()};
      hypotheses_ = beam_search(model_, task,
                                {.beam = imported_.beam, .length_penalty = imported_.length_penalty, .stop = stop_});
    }
    if (hypotheses_.empty()) throw Error("verify", "stopped before the end.", Exit::stopped);
    const std::string key = concat("expect.beam.", sentence);
    const Tensor expected = load_tensor(file_.at(key + ".symbols"));
    const auto& found = hypotheses_.at(static_cast<size_t>(sentence));
    Tensor symbols = torch::full_like(expected, int64_t{BeamMarks{}.end});  // theirs repeat the end
    std::vector<double> scores;
    for (size_t i = 0; i < found.size(); ++i) {
      const auto length = std::min<int64_t>(expected.size(1), static_cast<int64_t>(found[i].symbols.size()));
      for (int64_t t = 0; t < length; ++t)
        symbols[static_cast<int64_t>(i)][t] = found[i].symbols[static_cast<size_t>(t)];
      scores.push_back(found[i].score);
    }
    add(concat("beam ", sentence, " symbols"), symbols, expected, 0.0);
    compare(concat("beam ", sentence, " scores"), torch::tensor(scores), key + ".scores", losses_bound);
  }

  void ten_steps() {
    compare("ten losses", losses_of_steps(file_, model_, batch_, Pass{.training = true}), "expect.losses",
            losses_bound);
    for (const TensorPart& part : parts_) after(part);
  }

  // Without a norm, attention does not change with the bias of its keys: the gradient is rounding, of which Adam makes
  // steps of lr in either direction. Such entries have no value to be compared.
  void after(const TensorPart& part) {
    constexpr double rounding = 1e-5;  // of the tensor's largest gradient
    const Tensor size = theirs("expect.grads.", part).abs(), moved = size.gt(rounding * size.max());
    if (!moved.any().item<bool>()) return;
    const Tensor expected = theirs("expect.after.", part);
    add("after " + part.ours, tensor(part.ours).detach().where(moved, expected), expected, after_bound);
  }

  const SafetensorsFile& file_;
  const StopToken& stop_;
  ImportedTranslator imported_;
  EncoderDecoder model_;
  std::vector<TensorPart> parts_;
  TranslationBatch batch_;
  std::vector<std::vector<Hypothesis>> hypotheses_;
  std::vector<Check> checks_;
};

}  // namespace

std::vector<Check> verify_translator(const SafetensorsFile& file, const std::string& kernels, const StopToken& stop) {
  return TranslatorVerification(file, kernels, stop).run();
}

}  // namespace normlab
