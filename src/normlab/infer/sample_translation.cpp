#include "normlab/infer/sample_translation.h"

#include <algorithm>

#include "normlab/base/random.h"

namespace normlab {

TranslatedLine sample_translation(const EncoderDecoder& model, PairVocabulary& vocabulary, const std::string& text,
                                  const SampleOptions& options, int64_t line) {
  const torch::NoGradGuard no_grad;
  TranslatedLine out;
  const std::vector<int32_t> source = read_source(vocabulary, text, model.config().seq_len, out);
  if (source.empty()) return out;
  model.pack_weights();
  const OutputVocabulary outputs = make_output_vocabulary(vocabulary.outputs());
  const DecodeTables tables = model.decode_tables(outputs, /*language=*/1);
  BeamState state(model.encode(make_source_batch({source}), Pass{}), model.decoder_layers(), tables.plan);
  SampleOptions own = options;
  own.seed = stream_key(options.seed, line);
  std::vector<int32_t> symbols = {PairVocabulary::begin};
  double log_prob = 0.0;
  const int64_t limit = longest_translation(static_cast<int64_t>(source.size()), model.config().seq_len);
  for (int64_t t = 0; t < limit && symbols.back() != PairVocabulary::end; ++t) {
    const torch::Tensor logits =
        model.step(torch::tensor({int64_t{symbols.back()}}, torch::kInt64), tables, state)[0].to(torch::kCPU,
                                                                                                 torch::kFloat32);
    const int64_t place = choose_token(floats_of(logits), own, t);
    log_prob += logits.log_softmax(0)[place].item<double>();
    symbols.push_back(static_cast<int32_t>(outputs.ids_n[place].item<int64_t>()));
  }
  out.alternatives.push_back({vocabulary.decode(symbols), log_prob, static_cast<int64_t>(symbols.size()) - 1});
  return out;
}

}  // namespace normlab
