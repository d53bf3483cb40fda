// normlab-torch speed: one line of JSON in, one out: how fast trials of a configuration train on this machine. `normlab
// compare --dry-run` and `normlab plan` ask it.
#include <iostream>

#include "normlab/cli/torch/verbs.h"
#include "normlab/study/trial/trial_speed.h"

namespace normlab {

void add_speed(CLI::App& app, Exit&) {
  app.add_subcommand("speed", "for normlab itself")->group("")->callback([] {
    std::string line;
    std::getline(std::cin, line);
    const auto in = nlohmann::json::parse(line);
    const Config config =
        resolve_config(optional_settings(parse_toml(in.at("config").get<std::string>(), "speed"))).config;
    use_threads(std::max(1, config.train.threads));
    const TrialSpeed speed = trial_speed(config, in.at("vocab_size"), in.at("jobs"));
    const nlohmann::json out = {{"seconds_of_step", speed.seconds_of_step},
                                {"flops_per_second", speed.flops_per_second}};
    print_line(out.dump());
  });
}

}  // namespace normlab
