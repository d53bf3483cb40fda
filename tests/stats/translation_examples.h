// For tests: four translations with one or two references, whose scores sacreBLEU 2.6.0 has computed.
#pragma once

#include <sstream>
#include <string>
#include <vector>

#include "normlab/stats/segments.h"

namespace normlab {

inline const std::vector<std::string> example_outputs = {"the cat sat on the mat today .", "a quick brown fox", "",
                                                         "we went home"};
inline const std::vector<std::vector<std::string>> example_references = {
    {"the cat is on the mat .", "the quick brown fox jumped", "nothing here", "home we went then"},
    {"there is a cat on the mat today", "a quick brown dog", "", "we went home"}};

inline std::vector<std::string> words_of(const std::string& line) {
  std::istringstream in(line);
  std::vector<std::string> words;
  for (std::string word; in >> word;) words.push_back(word);
  return words;
}

inline std::vector<std::string> characters_of(const std::string& line) {
  std::vector<std::string> characters;
  for (const char c : line)
    if (c != ' ') characters.emplace_back(1, c);
  return characters;
}

// With the first so many references.
inline std::vector<Segment> example_segments(size_t references,
                                             std::vector<std::string> (*split)(const std::string&) = words_of) {
  TokenIds ids;
  std::vector<Segment> segments(example_outputs.size());
  for (size_t i = 0; i < segments.size(); ++i) {
    segments[i].hypothesis = ids(split(example_outputs[i]));
    for (size_t r = 0; r < references; ++r) segments[i].references.push_back(ids(split(example_references[r][i])));
  }
  return segments;
}

}  // namespace normlab
