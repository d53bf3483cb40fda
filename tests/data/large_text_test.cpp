// Texts that are not held in memory: the same tokens as in memory, from a cache that is checked, shared and made again.
#include "normlab/data/large_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "normlab/base/error.h"
#include "normlab/base/random.h"
#include "normlab/base/text.h"
#include "normlab/data/byte_bpe_learn.h"
#include "normlab/data/subword_tokenizer.h"
#include "normlab/data/text_size.h"
#include "stand_in.h"

namespace normlab {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;
using testing::ThrowsMessage;

// Words, digits, punctuation and all kinds of white space in a random order, with line feeds between.
std::string odd_text(uint64_t seed, size_t n_words) {
  const std::vector<std::string> words = {"the",      "a",
                                          " ",        "  ",
                                          "\n",       "\n",
                                          "\n\n",     "\r\n",
                                          "\t",       "Don't",
                                          "'s",       "2026",
                                          "12",       "x",
                                          ".",        "...",
                                          "\xC3\xA9", "e\u0301",
                                          "\u3000",   "\u2581",
                                          "<end>",    "\xF0\x9F\x98\x80",
                                          "--",       "I'LL",
                                          "\u00a0",   "ing\n",
                                          "of\nthe",  "1\n2",
                                          ")\nA",     "\u0301"};
  std::string text;
  for (size_t i = 0; i < n_words; ++i) text += words[draw_below(seed, i, words.size())];
  return text;
}

json byte_level_file(const json& pre_tokenizer, const json& normalizer) {
  json file = json::parse(learn_tokenizer_json({odd_text(1, 5000)}, {.operations = 200}, [](int) {}));
  file["pre_tokenizer"] = pre_tokenizer;
  file["normalizer"] = normalizer;
  file["added_tokens"] = {{{"id", file["model"]["vocab"].size()}, {"content", "<end>"}}};
  return file;
}

// As SentencePiece's: characters, spaces as U+2581, merges within and across words.
json character_file(const json& pre_tokenizer, const json& normalizer) {
  json vocabulary = {{"<unk>", 0}};
  json merges = json::array();
  const auto add = [&](const std::string& token) {
    if (!vocabulary.contains(token)) vocabulary[token] = vocabulary.size();
  };
  for (char c = ' '; c < 127; ++c) add({c});
  for (const char* token : {"\n", "\u2581", "\n\n", "th", "the", "\u2581a", "\u2581\u2581", "of", "of\n", "<end>"})
    add(token);
  for (const auto& [left, right] : std::vector<std::pair<std::string, std::string>>{
           {"\n", "\n"}, {"t", "h"}, {"th", "e"}, {"\u2581", "a"}, {"\u2581", "\u2581"}, {"o", "f"}, {"of", "\n"}})
    merges.push_back({left, right});
  return {{"added_tokens", {{{"id", vocabulary["<end>"]}, {"content", "<end>"}}}},
          {"normalizer", normalizer},
          {"decoder", {{"type", "Fuse"}}},
          {"pre_tokenizer", pre_tokenizer},
          {"model",
           {{"type", "BPE"}, {"unk_token", "<unk>"}, {"fuse_unk", true}, {"vocab", vocabulary}, {"merges", merges}}}};
}

std::vector<std::pair<std::string, json>> kinds_of_files() {
  const json bytes = {{"type", "ByteLevel"}, {"add_prefix_space", false}};
  const json plain_bytes = {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"use_regex", false}};
  const std::string expression =
      R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
  const json split = {{"type", "Split"}, {"pattern", {{"Regex", expression}}}, {"behavior", "Isolated"}};
  const json llama3 = {{"type", "Sequence"}, {"pretokenizers", {split, plain_bytes}}};
  const json spaces = {{"type", "Replace"}, {"pattern", {{"String", " "}}}, {"content", "\u2581"}};
  const json prepend = {{"type", "Prepend"}, {"prepend", "\u2581"}};
  const json gemma = {{"type", "Split"}, {"pattern", {{"String", " "}}}, {"behavior", "MergedWithPrevious"}};
  return {{"GPT-2", byte_level_file(bytes, nullptr)},
          {"Llama 3", byte_level_file(llama3, nullptr)},
          {"Qwen 3", byte_level_file(llama3, {{"type", "NFC"}})},
          {"Gemma", character_file(gemma, spaces)},
          {"Llama 2", character_file(nullptr, {{"type", "Sequence"}, {"normalizers", {prepend, spaces}}})},
          {"Metaspace",
           character_file({{"type", "Metaspace"}, {"replacement", "\u2581"}, {"prepend_scheme", "always"}}, nullptr)}};
}

TEST(Cuts, ChangeNoToken) {
  for (const auto& [name, file] : kinds_of_files()) {
    const SubwordTokenizer tokenizer(file.dump(), name);
    BpeModel::Cache cache;
    int cuts = 0;
    for (uint64_t seed = 0; seed < 60; ++seed) {
      const std::string text = odd_text(100 + seed, 60);
      const std::vector<int32_t> whole = tokenizer.encode(text, name);
      for (size_t at = 0; at <= text.size(); ++at) {
        if (!tokenizer.can_cut(text, at)) continue;
        ++cuts;
        std::vector<int32_t> parts = tokenizer.encode(text.substr(0, at), name);
        const auto rest = tokenizer.encode(text.substr(at), name, SubwordTokenizer::Part::later, cache);
        parts.insert(parts.end(), rest.begin(), rest.end());
        ASSERT_EQ(parts, whole) << name << ", seed " << seed << ", cut at " << at;
      }
    }
    EXPECT_GT(cuts, 100) << name;
  }
}

TEST(Cuts, AreNotMadeWhereTokensReachAcross) {
  json joining = character_file(nullptr, nullptr);
  joining["model"]["vocab"]["\nt"] = joining["model"]["vocab"].size();
  joining["model"]["merges"].push_back({"\n", "t"});
  EXPECT_FALSE(SubwordTokenizer(joining.dump(), "test").can_cut("of\nthe", 3));
  const json lines = {{"type", "Split"}, {"pattern", {{"Regex", "[a-z\\n]+"}}}, {"behavior", "Isolated"}};
  EXPECT_FALSE(SubwordTokenizer(byte_level_file(lines, nullptr).dump(), "test").can_cut("of\nthe", 3));
  json stripping = byte_level_file({{"type", "ByteLevel"}, {"add_prefix_space", false}}, nullptr);
  EXPECT_TRUE(SubwordTokenizer(stripping.dump(), "test").can_cut("of\nthe", 3));
  stripping["added_tokens"][0]["rstrip"] = true;
  EXPECT_FALSE(SubwordTokenizer(stripping.dump(), "test").can_cut("of\nthe", 3));
}

class LargeText : public testing::Test {
 protected:
  fs::path file(const std::string& name, const std::string& content) {
    write_file_atomically(folder_ / name, content);
    return folder_ / name;
  }
  // What is in the cache, without locks: whole entries, or those that were set aside.
  std::vector<fs::path> entries(bool damaged = false) const {
    std::vector<fs::path> found;
    for (const auto& entry : fs::directory_iterator(cache_ / "normlab" / "tokens"))
      if (entry.path().extension() != ".lock" && entry.path().filename().string().starts_with("damaged-") == damaged)
        found.push_back(entry.path());
    return found;
  }
  void expect_same(const fs::path& path, std::string_view kind, const Tokenizer* known = nullptr) {
    const TextForm held, cached{.in_memory = 0};
    const Corpus a = known ? load_corpus(path, *known, held) : load_corpus(path, kind, held);
    for (int times = 0; times < 2; ++times) {
      const Corpus b = known ? load_corpus(path, *known, cached) : load_corpus(path, kind, cached);
      ASSERT_EQ(a.tokens.all(), b.tokens.all()) << path;
      EXPECT_EQ(a.tokenizer, b.tokenizer);
      EXPECT_EQ(a.sha256, b.sha256);
      const auto windows = eval_windows({3, static_cast<int64_t>(a.tokens.size())}, 7, 50);
      const TextSize x = size_of_targets(a.tokenizer, a.tokens, windows),
                     y = size_of_targets(b.tokenizer, b.tokens, windows);
      EXPECT_EQ(x.bytes, y.bytes);
      EXPECT_EQ(x.characters, y.characters);
    }
  }

  TemporaryFolder folder_;
  fs::path cache_ = folder_ / "cache";
  ScopedVariable xdg_{"XDG_CACHE_HOME", cache_.string()};
};

TEST_F(LargeText, HasTheTokensOfMemory) {
  const std::string text = odd_text(3, 900'000);  // several parts
  ASSERT_GT(text.size(), 2U << 20);
  const fs::path path = file("text.txt", text);
  expect_same(path, "char");
  expect_same(path, "byte");
  const Tokenizer tokenizer = [&] {
    write_file_atomically(folder_ / "tokenizer.json", kinds_of_files()[2].second.dump());
    return Tokenizer::read_subwords(folder_ / "tokenizer.json");
  }();
  expect_same(path, "", &tokenizer);
  EXPECT_EQ(entries().size(), 3U);
}

TEST_F(LargeText, OfJsonlHasTheTokensOfItsDocuments) {
  std::string lines;
  for (uint64_t i = 0; i < 3000; ++i)
    lines += json{{"id", i}, {"text", odd_text(i, 300)}}.dump() + (i % 3 ? "\n" : "\n\n");
  const fs::path path = file("text.jsonl", lines);
  expect_same(path, "char");
  expect_same(path, "byte");
  const Corpus corpus = load_corpus(file("two.jsonl", "{\"text\": \"ab\"}\n\r\n{\"text\": \"c\", \"x\": [1]}"), "char");
  EXPECT_EQ(corpus.tokenizer.decode(corpus.tokens.all()), "ab\n\nc");
  const TextForm form{.field = "body", .separator = "<end>"};
  const Corpus other = load_corpus(file("body.jsonl", "{\"body\": \"ab\"}\n{\"body\": \"c\"}\n"), "char", form);
  EXPECT_EQ(other.tokenizer.decode(other.tokens.all()), "ab<end>c");
  const TextForm plain{.field = ""};
  EXPECT_EQ(load_corpus(folder_ / "two.jsonl", "byte", plain).tokens.size(), fs::file_size(folder_ / "two.jsonl"));
}

TEST_F(LargeText, RefusesJsonlByLine) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"{\"text\": \"a\"}\n{\"text\": ", "line 2 is not JSON"},
      {"\n\n[1]", "line 3 is a JSON array"},
      {"{\"text\": \"a\"}\n{\"body\": \"b\", \"id\": 1}\n", "line 2 has no \"text\"; it has \"body\", \"id\""},
      {"{\"text\": 7}", "line 1: \"text\" is a JSON number"},
      {"{\"text\": \"a\\u0000\"}", "line 1: \"text\" has a NUL"},
      {"{\"text\": \"\xFF\"}", "line 1 is not JSON"},
      {"{\"text\": \"\\ud800\"}", "line 1 is not JSON"},
      {std::string(200, '[') + std::string(200, ']'), "line 1 is not JSON"},
      {"\n", "is empty"}};
  for (const auto& [content, message] : cases)
    for (const int64_t in_memory : {int64_t{0}, int64_t{1} << 20})
      EXPECT_THAT([&] { load_corpus(file("bad.jsonl", content), "char", {.in_memory = in_memory}); },
                  ThrowsMessage<DataError>(AllOf(HasSubstr("bad.jsonl"), HasSubstr(message))));
  EXPECT_TRUE(entries().empty());
}

TEST_F(LargeText, SaysWhereItIsNotText) {
  std::string text = odd_text(3, 900'000);
  const size_t at = text.rfind("\nthe");
  text[at + 1] = '\0';
  EXPECT_THAT([&] { load_corpus(file("nul.txt", text), "char", {.in_memory = 0}); },
              ThrowsMessage<DataError>(AllOf(HasSubstr("nul.txt from byte "), HasSubstr("NUL at byte"))));
  EXPECT_THAT([&] { load_corpus(file("packed.txt", "\x1f\x8b\x08"), "char", {.in_memory = 0}); },
              ThrowsMessage<DataError>(HasSubstr("gunzip")));
  const Tokenizer known = Tokenizer::make("char", "ab");
  EXPECT_THAT([&] { load_corpus(file("other.txt", "abc"), known, {.in_memory = 0}); },
              ThrowsMessage<DataError>(HasSubstr("'c' (U+0063) at character 2")));
  EXPECT_TRUE(entries().empty());
}

TEST_F(LargeText, ADamagedEntryIsSetAsideAndMadeAgain) {
  const fs::path path = file("text.txt", odd_text(5, 1000));
  const TextForm form{.in_memory = 0};
  const std::vector<int32_t> tokens = load_corpus(path, "char", form).tokens.all();
  for (const char* name : {"tokens.bin", "facts.json"}) {
    const fs::path damaged = entries().front() / name;
    std::string content = read_file(damaged);
    content[content.size() / 2] ^= 1;
    std::ofstream(damaged, std::ios::binary) << content;
    EXPECT_EQ(load_corpus(path, "char", form).tokens.all(), tokens);
    EXPECT_EQ(entries().size(), 1U);
    EXPECT_EQ(entries(/*damaged=*/true).size(), 1U);
  }
  std::ofstream(entries().front() / "tokens.bin", std::ios::app) << "x";
  EXPECT_EQ(load_corpus(path, "char", form).tokens.all(), tokens);
}

TEST_F(LargeText, IsReadAgainWhenItChanged) {
  const TextForm form{.in_memory = 0};
  EXPECT_EQ(load_corpus(file("text.txt", "abab"), "char", form).tokens.size(), 4U);
  EXPECT_EQ(load_corpus(file("text.txt", "abcabc"), "char", form).tokenizer.vocab_size(), 3);
  EXPECT_EQ(entries().size(), 2U);
}

TEST_F(LargeText, IsTokenisedByOneOfSeveralProcesses) {
  const fs::path path = file("text.txt", odd_text(3, 200'000));
  const size_t size = load_corpus(path, "char").tokens.size();
  std::vector<pid_t> children;
  for (int i = 0; i < 4; ++i) {
    const pid_t child = ::fork();
    if (child == 0) ::_exit(load_corpus(path, "char", {.in_memory = 0}).tokens.size() == size ? 0 : 1);
    children.push_back(child);
  }
  for (const pid_t child : children) {
    int status = 0;
    ::waitpid(child, &status, 0);
    EXPECT_TRUE(exited_with(status, 0));
  }
  EXPECT_EQ(entries().size(), 1U);
}

TEST_F(LargeText, LeavesNothingWhenStopped) {
  const fs::path path = file("text.txt", odd_text(3, 1000));
  EXPECT_THAT([&] { load_corpus(path, "char", {.in_memory = 0, .stop = [] { return true; }}); },
              ThrowsMessage<Error>(HasSubstr("stopped by a signal")));
  EXPECT_TRUE(entries().empty());
}

TEST_F(LargeText, NeedsACache) {
  const ScopedVariable no_cache("XDG_CACHE_HOME", "relative"), no_home("HOME", "");
  EXPECT_THAT([&] { load_corpus(file("text.txt", "abc"), "char", {.in_memory = 0}); },
              ThrowsMessage<Error>(HasSubstr("XDG_CACHE_HOME")));
}

}  // namespace
}  // namespace normlab
