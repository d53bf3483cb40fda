// What is wrong with a command line, in one sentence, and what was probably meant.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace normlab {

std::string explain(const CLI::ParseError& error, const CLI::App& app, const std::vector<std::string>& words);

// "there is no verb 'trian'. Did you mean `normlab train`?"
std::string unknown_verb(const std::string& name, const CLI::App& app);

// Checks of values whose messages say what is expected.
CLI::Validator whole_number(long long least, long long most = -1);  // -1: any
CLI::Validator number_between(double least, double most);
CLI::Validator number_above_zero();

}  // namespace normlab
