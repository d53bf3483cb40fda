// What the server sends for an address.
#pragma once

#include <memory>
#include <string>

namespace normlab {

struct Answer {
  int status = 200;
  std::shared_ptr<const std::string> body = {};  // shared: many clients may take it at once
  std::string tag = {};                          // changes with the body
  std::string policy = {};                       // a content security policy beside the page's own
  double next_look = 5.0;                        // seconds after which a page should ask again
  std::string moved_to = {};                     // 303: the address to get instead
};

inline std::shared_ptr<const std::string> shared_text(std::string text) {
  return std::make_shared<const std::string>(std::move(text));
}

// Seconds between two looks of a page where something runs, and where nothing does.
inline constexpr double active_seconds = 2.0, idle_seconds = 4.0;

}  // namespace normlab
