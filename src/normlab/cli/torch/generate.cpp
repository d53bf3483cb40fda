// normlab generate: text from a trained model, streamed.
#include <memory>

#include "normlab/base/text.h"
#include "normlab/cli/signals.h"
#include "normlab/cli/torch/verbs.h"
#include "normlab/infer/sample.h"
#include "normlab/train/checkpoint.h"

namespace normlab {
namespace {

struct GenerateOptions {
  std::string model, prompt = "\n", device = "auto";
  SampleOptions sample;
  int threads = 0;
  bool json = false, allow_nonfinite = false;
};

Exit generate_text(const GenerateOptions& options) {
  use_threads(decoding_threads(options.threads));
  const LoadedModel loaded = load_model(options.model, {options.allow_nonfinite, options.device});
  const auto encoded = loaded.tokenizer.encode_prompt(options.prompt, "--prompt");
  if (encoded.empty()) throw UsageError("--prompt", "is empty; give at least one character.");
  StreamDecoder decoder(loaded.tokenizer);
  std::string text;
  const auto show = [&](const std::string& part) {
    text += part;
    if (!options.json) write_output(part);
  };
  show(options.prompt);
  generate(loaded.model, {encoded.begin(), encoded.end()}, options.sample, [&](int64_t token) {
    show(decoder.push(static_cast<int32_t>(token)));
    return !stop_requested();
  });
  show(decoder.finish());
  if (options.json)
    print_json({{"checkpoint", loaded.folder.string()}, {"seed", options.sample.seed}, {"text", text}});
  else
    print_line("");
  return stop_requested() ? Exit::stopped : Exit::done;
}

}  // namespace

void add_generate(CLI::App& app, Exit& exit) {
  auto* verb = add_torch_verb(app, "generate");
  auto options = std::make_shared<GenerateOptions>();
  SampleOptions& sample = options->sample;
  verb->add_option("run,--run", options->model, "run or checkpoint")->required()->type_name("DIR");
  verb->add_option("--prompt", options->prompt, "text to continue; default: a line break")->type_name("TEXT");
  verb->add_option("--tokens", sample.max_tokens, "tokens to generate, default 500")->check(whole_number(0));
  verb->add_option("--temperature", sample.temperature, "default 1; 0 takes the most probable token")
      ->check(number_between(0, 100));
  verb->add_option("--top-k", sample.top_k, "sample from the k most probable tokens; 0 = all")->check(whole_number(0));
  verb->add_option("--top-p", sample.top_p,
                   "sample from the most probable tokens that make up this share of what --top-k keeps")
      ->check(number_between(0, 1));
  verb->add_option("--seed", sample.seed, "the same seed gives the same text")->check(whole_number(0));
  verb->add_option("--threads", options->threads, "threads; default: one, which is fastest for a token at a time")
      ->check(whole_number(0));
  verb->add_flag("--json", options->json, "machine-readable output");
  add_device(*verb, options->device);
  add_allow_nonfinite(*verb, options->allow_nonfinite);
  verb->footer("Example:\n  normlab generate runs/lp3 --prompt 'ROMEO:' --temperature 0.8 --top-k 40");
  verb->callback([options, &exit] { exit = generate_text(*options); });
}

}  // namespace normlab
