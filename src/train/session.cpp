#include "train/session.h"

#include <ATen/Parallel.h>

#include "base/error.h"
#include "base/text.h"
#include "data/dataset.h"
#include "kernels/isa.h"
#include "record/manifest.h"

namespace normlab {
namespace {

void require_same_vocabulary(const RunDir& run, const Corpus& corpus) {
  const auto latest = run.latest();
  if (latest && load_tokenizer(latest->path) != corpus.tokenizer)
    throw DataError("--resume", str("the text's vocabulary is not that of ", latest->path.string(),
                                    ". Go on with the text the run was started with."));
}

}  // namespace

Corpus load_text(const Config& config) {
  Corpus corpus = load_corpus(find_dataset(config.data.source),
                              enum_names<TokenUnit>()[static_cast<size_t>(config.data.tokenizer)]);
  require_windows(make_split(static_cast<int64_t>(corpus.tokens.size()), config.data.folds, config.data.fold),
                  config.model.seq_len);
  return corpus;
}

Trainer open_session(const SessionRequest& request) {
  const Config& config = request.config;
  Corpus corpus = load_text(config);
  RunDir run = request.going_on ? RunDir::open_locked(request.folder) : RunDir::create(request.folder);
  if (request.going_on) {
    require_same_run(resolve_config(read_toml(run.config().string())).config, config);
    require_same_vocabulary(run, corpus);
  }
  write_file_atomically(run.config(), to_toml(config));
  const std::string kernels = enum_names<Kernels>()[static_cast<size_t>(config.model.kernels)];
  add_session(run.manifest(),
              {.command = request.command, .kernels = str(kernels, " ", isa_name()), .threads = at::get_num_threads()});
  return Trainer(config, std::move(corpus), std::move(run));
}

}  // namespace normlab
