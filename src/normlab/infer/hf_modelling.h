// The modelling file for trust_remote_code: the modules of the Python package in one file, and a class of transformers.
#pragma once

#include <string>

namespace normlab {

std::string modelling_file();

}  // namespace normlab
