#include "normlab/train/session.h"

#include <ATen/Parallel.h>

#include "normlab/base/error.h"
#include "normlab/base/memory.h"
#include "normlab/base/terminal.h"
#include "normlab/base/text.h"
#include "normlab/config/load_data.h"
#include "normlab/kernels/isa.h"
#include "normlab/models/device.h"
#include "normlab/record/manifest.h"
#include "normlab/train/resume_point.h"
#include "normlab/train/trainer.h"
#include "normlab/train/translation_trainer.h"

namespace normlab {
namespace {

std::string purpose_of_text(const Config& config) { return concat("the text ", config.data.source); }

std::string purpose_of_model(const Config& config) {
  return concat("weights, gradients and moments of the model (model.d_model = ", config.model.d_model,
                ", model.n_layers = ", config.model.n_layers, ")");
}

void require_same_vocabulary(const RunDir& run, const Corpus& corpus) {
  const auto latest = run.latest();
  if (latest && load_tokenizer(latest->path) != corpus.tokenizer)
    throw DataError("--resume", concat("the text's vocabulary is not that of ", latest->path.string(),
                                       ". Resume with the text the run was started with."));
}

// Rank 0 creates or reopens the run; the others read it once that is done.
RunDir open_run(const SessionRequest& request, const Config& config) {
  if (request.sharing.ranks && request.sharing.ranks->rank() > 0) {
    wait_for_all(*request.sharing.ranks);
    return RunDir::open(request.folder);
  }
  RunDir run = request.resuming ? RunDir::open_locked(request.folder) : RunDir::create(request.folder);
  if (request.resuming) {
    Config of_run = stored_config(run.config());
    const std::string there = of_run.train.device, here = config.train.device;
    if (there != here) of_run.model.kernels = config.model.kernels;
    require_same_run(of_run, config);
    if (there != here && there != "auto")
      log_line(concat("the run was on ", there, " and resumes on ", here, ": results may differ in their last bits"));
    settle_resume_point(run);
  }
  return run;
}

void begin(const RunDir& run, const SessionRequest& request, const Config& config) {
  if (request.sharing.ranks && request.sharing.ranks->rank() > 0) return;
  write_file_atomically(run.config(), to_toml(config));
  const std::string kernels = enum_names<Kernels>()[static_cast<size_t>(config.model.kernels)];
  add_session(run.manifest(), {.command = request.command,
                               .kernels = is_cpu(config.train.device) ? concat(kernels, " ", isa_name()) : kernels,
                               .dtype = config.model.dtype == Precision::bfloat16 ? "bfloat16" : "float32",
                               .threads = at::get_num_threads(),
                               .device = config.train.device});
  if (request.sharing.ranks) wait_for_all(*request.sharing.ranks);
}

std::unique_ptr<TrainingRun> open_language_model(const SessionRequest& request) {
  if (request.config.train.only != TrainedPart::all && request.config.norm.qk_clip > 0.0)
    throw UsageError("train.only",
                     "does not go with norm.qk_clip, which changes weights whether they are trained or not.");
  Corpus corpus =
      with_memory_for(purpose_of_text(request.config), [&] { return load_text(request.config, request.stop); });
  RunDir run = open_run(request, request.config);
  if (request.resuming) require_same_vocabulary(run, corpus);
  begin(run, request, request.config);
  return with_memory_for(purpose_of_model(request.config), [&] {
    return std::make_unique<Trainer>(request.config, std::move(corpus), std::move(run), request.sharing);
  });
}

std::unique_ptr<TrainingRun> open_translator(const SessionRequest& request) {
  Config config = request.config;
  TranslationData data = with_memory_for(purpose_of_text(config), [&] { return load_pairs(config); });
  if (config.translation.length_p975 == 0) config.translation.length_p975 = data.length_p975;
  RunDir run = open_run(request, config);
  if (const auto latest = run.latest(); latest && load_pair_vocabulary(latest->path) != data.vocabulary)
    throw DataError("--resume", concat("the text's subwords are not those of ", latest->path.string(),
                                       ". Resume with the text the run was started with."));
  begin(run, request, config);
  return with_memory_for(purpose_of_model(config), [&] {
    return std::make_unique<TranslationTrainer>(config, std::move(data), std::move(run), request.sharing);
  });
}

// Of several ranks on a host, each takes a GPU of its own.
std::string device_of(const Config& config, const RankGroup* ranks) {
  const std::string& wanted = config.train.device;
  if (!ranks) return wanted;
  return wanted == "auto" ? "cpu" : wanted == "cuda" ? concat("cuda:", place_on_host(*ranks)) : wanted;
}

}  // namespace

std::unique_ptr<TrainingRun> open_session(const SessionRequest& request) {
  SessionRequest own = request;
  settle_device(own.config, device_of(own.config, own.sharing.ranks));
  if (own.config.model.kernels != request.config.model.kernels)
    log_line(concat("model.kernels = composite: train.device is ", own.config.train.device));
  return own.config.translation.wanted() ? open_translator(own) : open_language_model(own);
}

}  // namespace normlab
