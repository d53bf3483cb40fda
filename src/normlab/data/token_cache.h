// The cache of what is made of large texts: one folder for each, checked when it is used, made again when damaged.
#pragma once

#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>

#include "normlab/base/stop.h"

namespace normlab {

// What tells a file from another and from itself after a change, without reading it.
nlohmann::json identity_of(const std::filesystem::path& path);

struct CacheRequest {
  std::filesystem::path source;  // for messages
  const nlohmann::json& key;     // all that the content depends on
  // Fills the folder and returns the facts that are kept with it.
  std::function<nlohmann::json(const std::filesystem::path& folder)> make;
  StopToken stop = never_stop;
};

// The folder of the entry, whose files have the content they were made with.
struct CacheEntry {
  std::filesystem::path folder;
  nlohmann::json facts;
};
// Of several processes that ask at a time, one makes the entry and the others wait for it. Error when there is no
// folder for the cache.
CacheEntry cached(const CacheRequest& request);

}  // namespace normlab
