// Lines of standard input as they come.
#pragma once

#include <string>
#include <vector>

namespace normlab {

class LineReader {
 public:
  // Up to `most` lines: waits for the first, then takes what is there already. None at the end of the input or when a
  // signal asks to stop. A last line without its end is a line.
  std::vector<std::string> read(size_t most);

 private:
  bool fill(bool wait);  // false: nothing came

  std::string pending_;
  bool ended_ = false;
};

}  // namespace normlab
