// The verbs of normlab-torch; each file adds one subcommand that sets the exit code.
#pragma once

#include "normlab/cli/torch_verbs.h"
#include "normlab/cli/verbs.h"

namespace normlab {

struct Progress;

void add_train(CLI::App& app, Exit& exit);
void add_trial(CLI::App& app, Exit& exit);
void add_eval(CLI::App& app, Exit& exit);
void add_inspect(CLI::App& app, Exit& exit);
void add_theory(CLI::App& app, Exit& exit);
void add_generate(CLI::App& app, Exit& exit);
void add_translate(CLI::App& app, Exit& exit);
void add_verify(CLI::App& app, Exit& exit);
void add_import(CLI::App& app, Exit& exit);
void add_export(CLI::App& app, Exit& exit);
void add_bench(CLI::App& app, Exit& exit);
void add_doctor(CLI::App& app, Exit& exit);
void add_speed(CLI::App& app, Exit& exit);

// A verb with its description of torch_verbs.h.
CLI::App* add_torch_verb(CLI::App& app, const char* name);

// 0 means all cores. One OpenMP pool serves libtorch, MKL and our kernels.
void use_threads(int threads);
// Of train.threads, where 0 lets the program choose: one thread for small models, whose steps are too short to share.
int training_threads(const Config& config);
// Of --threads, where 0 lets the program choose: one, as a step of generation or beam search leaves too little to share.
int decoding_threads(int threads);

// --device, of every verb that uses a trained model.
void add_device(CLI::App& verb, std::string& device);
// --allow-nonfinite, of every verb that uses trained weights.
void add_allow_nonfinite(CLI::App& verb, bool& allowed);

std::string progress_text(const Progress& progress);  // of a run, one line

}  // namespace normlab
