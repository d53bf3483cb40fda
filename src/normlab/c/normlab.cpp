#include "normlab/c/normlab.h"

#include <cstdlib>
#include <cstring>
#include <exception>
#include <filesystem>
#include <memory>
#include <new>
#include <optional>
#include <string>

#include "normlab/base/error.h"
#include "normlab/base/text.h"
#include "normlab/infer/sample.h"
#include "normlab/models/translate.h"
#include "normlab/train/checkpoint.h"

struct normlab_model {
  std::optional<normlab::LoadedModel> language_model;
  std::optional<normlab::LoadedTranslator> translator;
};

namespace normlab {
namespace {

thread_local std::string last_error;

// What `action` returns, or null with the error kept: the only place where exceptions end.
template <class Action>
auto or_null(const Action& action) noexcept -> decltype(action()) {
  try {
    const torch::NoGradGuard no_grad;
    return action();
  } catch (const std::bad_alloc&) {
    last_error = "[memory] out";  // short enough to need none
  } catch (const std::exception& error) {
    try {
      last_error = error.what();
    } catch (...) {
      last_error.clear();
    }
  } catch (...) {
    last_error = "[error] ?";
  }
  return nullptr;
}

const char* required(const char* text, const char* name) {
  if (!text) throw UsageError(name, "is NULL; expected a text.");
  return text;
}

// By malloc, so that normlab_free is free.
char* copy_of(const std::string& text) {
  auto* copy = static_cast<char*>(std::malloc(text.size() + 1));
  if (!copy) throw std::bad_alloc();
  std::memcpy(copy, text.c_str(), text.size() + 1);
  return copy;
}

SampleOptions sample_options(const normlab_sampling& sampling) {
  const auto require = [](bool holds, const char* name, double got, const char* expected) {
    if (!holds) throw UsageError(name, concat("got ", format_number(got), ", expected ", expected, "."));
  };
  require(sampling.tokens >= 0, "tokens", sampling.tokens, "0 or more");
  require(sampling.temperature >= 0.0 && sampling.temperature <= 100.0, "temperature", sampling.temperature,
          "a number from 0 to 100");
  require(sampling.top_k >= 0, "top_k", sampling.top_k, "0 or more");
  require(sampling.top_p >= 0.0 && sampling.top_p <= 1.0, "top_p", sampling.top_p, "a number from 0 to 1");
  return {.max_tokens = sampling.tokens,
          .temperature = sampling.temperature,
          .top_k = sampling.top_k,
          .top_p = sampling.top_p,
          .seed = sampling.seed};
}

std::string continued(const LoadedModel& loaded, const std::string& prompt, const SampleOptions& options) {
  const auto encoded = loaded.tokenizer.encode_prompt(prompt, "prompt");
  if (encoded.empty()) throw UsageError("prompt", "is empty; give at least one character.");
  StreamDecoder decoder(loaded.tokenizer);
  std::string text = prompt;
  generate(loaded.model, {encoded.begin(), encoded.end()}, options, [&](int64_t token) {
    text += decoder.push(static_cast<int32_t>(token));
    return true;
  });
  return text + decoder.finish();
}

}  // namespace
}  // namespace normlab

using namespace normlab;

normlab_model* normlab_load(const char* folder) {
  return or_null([&] {
    const std::filesystem::path path = required(folder, "folder");
    auto model = std::make_unique<normlab_model>();
    const std::filesystem::path config = path / "config.toml";
    if (std::filesystem::exists(config) && stored_config(config).translation.wanted())
      model->translator.emplace(load_translator(path));
    else
      model->language_model.emplace(load_model(path));
    return model.release();
  });
}

void normlab_unload(normlab_model* model) { delete model; }

normlab_sampling normlab_default_sampling(void) {
  const SampleOptions defaults;
  return {.tokens = defaults.max_tokens,
          .temperature = defaults.temperature,
          .top_k = defaults.top_k,
          .top_p = defaults.top_p,
          .seed = defaults.seed};
}

char* normlab_generate(normlab_model* model, const char* prompt, const normlab_sampling* sampling) {
  return or_null([&] {
    if (!model || !model->language_model)
      throw UsageError("model", "is not a language model. Use normlab_translate for a translator.");
    const SampleOptions options = sample_options(sampling ? *sampling : normlab_default_sampling());
    return copy_of(continued(*model->language_model, required(prompt, "prompt"), options));
  });
}

char* normlab_translate(normlab_model* model, const char* line) {
  return or_null([&] {
    if (!model || !model->translator)
      throw UsageError("model", "is not a translator. Use normlab_generate for a language model.");
    LoadedTranslator& loaded = *model->translator;
    const TranslationConfig& config = loaded.config.translation;
    const BeamOptions beam{.beam = config.beam, .length_penalty = config.length_penalty};
    const auto lines = translate_lines(loaded.model, loaded.vocabulary, {required(line, "line")}, beam, 1);
    return copy_of(lines.front().alternatives.empty() ? "" : lines.front().alternatives.front().text);
  });
}

void normlab_free(char* text) { std::free(text); }

const char* normlab_last_error(void) { return last_error.c_str(); }
