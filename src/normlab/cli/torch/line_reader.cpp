#include "normlab/cli/torch/line_reader.h"

#include <poll.h>
#include <unistd.h>

#include <cerrno>

#include "normlab/base/file.h"
#include "normlab/cli/signals.h"

namespace normlab {

bool LineReader::fill(bool wait) {
  pollfd input{.fd = STDIN_FILENO, .events = POLLIN, .revents = 0};
  constexpr int look_for_signals = 200;  // milliseconds
  while (!stop_requested()) {
    const int ready = ::poll(&input, 1, wait ? look_for_signals : 0);
    if (ready == 0 && !wait) return false;
    if (ready <= 0) continue;
    char buffer[1 << 16];
    const ssize_t got = ::read(STDIN_FILENO, buffer, sizeof buffer);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) throw_errno("standard input", "read");
    if (got == 0) ended_ = true;
    pending_.append(buffer, static_cast<size_t>(got));
    return got > 0;
  }
  return false;
}

std::vector<std::string> LineReader::read(size_t most) {
  std::vector<std::string> lines;
  size_t begin = 0, searched = 0;
  while (lines.size() < most) {
    const size_t end = pending_.find('\n', searched);
    if (end != std::string::npos) {
      lines.push_back(pending_.substr(begin, end - begin));
      begin = searched = end + 1;
      continue;
    }
    searched = pending_.size();
    if (!ended_ && fill(/*wait=*/lines.empty())) continue;
    if (ended_ && begin < pending_.size()) lines.push_back(pending_.substr(begin)), begin = pending_.size();
    if (!ended_ && !stop_requested() && lines.empty()) continue;
    break;
  }
  pending_.erase(0, begin);
  return lines;
}

}  // namespace normlab
