// A small check that text is well-formed XML, enough for what the report writes; tests only.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace normlab::testing {

// Empty when well-formed, else what is wrong.
inline std::string xml_problem(std::string_view text) {
  std::vector<std::string> open;
  for (std::size_t i = 0; i < text.size();) {
    if (text[i] == '&') {
      const std::size_t end = text.find(';', i);
      const std::string_view entity = text.substr(i, end - i + 1);
      bool known = false;
      for (const char* name : {"&amp;", "&lt;", "&gt;", "&quot;", "&#39;"}) known = known || entity == name;
      if (!known) return "bad entity at " + std::string(text.substr(i, 12));
      i = end + 1;
    } else if (text[i] != '<') {
      ++i;
    } else {
      const std::size_t end = text.find('>', i);
      if (end == std::string_view::npos) return "a tag is not closed";
      const std::string tag(text.substr(i + 1, end - i - 1));
      const std::string name = tag.substr(0, tag.find_first_of(" \n/", 1));
      if (tag.find('<') != std::string::npos) return "< inside <" + tag;
      if (std::size_t quotes = 0; true) {
        for (const char c : tag) quotes += c == '"';
        if (quotes % 2 != 0) return "unbalanced quotes in <" + tag;
      }
      if (tag[0] == '/') {
        if (open.empty() || "/" + open.back() != tag) return "unexpected <" + tag + ">";
        open.pop_back();
      } else if (tag.back() != '/') {
        open.push_back(name);
      }
      i = end + 1;
    }
  }
  return open.empty() ? "" : "<" + open.back() + "> is left open";
}

inline std::size_t count(std::string_view text, std::string_view part) {
  std::size_t found = 0;
  for (std::size_t at = text.find(part); at != std::string_view::npos; at = text.find(part, at + part.size())) ++found;
  return found;
}

}  // namespace normlab::testing
