// An entry is a folder with facts.json and the files that it lists with their SHA-256; it appears in one step,
// complete.
#include "normlab/data/token_cache.h"

#include <sys/file.h>
#include <sys/stat.h>

#include <cerrno>
#include <chrono>
#include <thread>

#include "normlab/base/error.h"
#include "normlab/base/file.h"
#include "normlab/base/json.h"
#include "normlab/base/sha256.h"
#include "normlab/base/staging.h"
#include "normlab/base/terminal.h"
#include "normlab/base/text.h"
#include "normlab/data/user_cache.h"

namespace normlab {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr const char* facts_name = "facts.json";

fs::path tokens_folder(const fs::path& source) {
  const auto cache = user_cache();
  if (!cache)
    throw Error(source.string(), "its tokens have nowhere to be kept. Set XDG_CACHE_HOME or HOME to an absolute path.");
  std::error_code failure;
  fs::create_directories(*cache / "tokens", failure);
  if (failure)
    throw Error((*cache / "tokens").string(),
                concat("cannot make this folder: ", failure.message(), ". XDG_CACHE_HOME moves the cache."));
  return *cache / "tokens";
}

void require_going_on(const CacheRequest& request) {
  if (request.stop()) throw Error(request.source.string(), "stopped by a signal before it was read.", Exit::stopped);
}

// A lock that is waited for. On a file system without locks every process makes its own entry, and one of them stays.
File waited_lock(const fs::path& path, const CacheRequest& request) {
  File file = File::open_own(path);
  bool told = false;
  while (::flock(file.descriptor(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK && errno != EINTR) break;
    require_going_on(request);
    if (!told) log_line(concat("waiting for another process that reads ", request.source.string()));
    told = true;
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  return file;
}

// The facts, with the sums of the files and of itself.
void write_facts(const fs::path& folder, const json& facts) {
  json content = {{"facts", facts}, {"files", json::object()}};
  for (const auto& entry : fs::directory_iterator(folder))
    content["files"][entry.path().filename().string()] = sha256_file(entry.path());
  const std::string text = content.dump();
  write_file_atomically(folder / facts_name, json{{"content", text}, {"sha256", sha256_hex(text)}}.dump());
}

// DataError for an entry that is not as it was made.
json checked_facts(const fs::path& folder) {
  const json outer = parse_json(read_file(folder / facts_name));
  if (!outer.is_object() || !outer.contains("content") || !outer["content"].is_string() || !outer.contains("sha256") ||
      outer["sha256"] != sha256_hex(outer["content"].get<std::string>()))
    throw DataError(facts_name, "has changed.");
  const json content = parse_json(outer["content"].get<std::string>());
  for (const auto& [name, sum] : content.at("files").items())
    if (sha256_file(folder / name) != sum) throw DataError(name, "has changed.");
  return content.at("facts");
}

void set_aside(const fs::path& folder, const CacheRequest& request, const std::string& reason) {
  const fs::path aside = folder.parent_path() / concat("damaged-", folder.filename().string());
  std::error_code ignored;
  if (fs::exists(fs::symlink_status(aside, ignored))) remove_folder(aside);
  std::error_code failure;
  fs::rename(folder, aside, failure);
  if (failure) throw Error(folder.string(), concat("is damaged and cannot be renamed: ", failure.message(), "."));
  log_line(concat(warning_label(2), "the tokens of ", request.source.string(), " in the cache are damaged (", reason,
                  "); they are made again, and the damaged ones are in ", aside.string()));
}

}  // namespace

json identity_of(const fs::path& path) {
  struct stat facts {};
  if (::stat(path.c_str(), &facts) != 0) throw_errno(path, "examine the file");
  const auto time = [](const timespec& t) { return json{t.tv_sec, t.tv_nsec}; };
  return {{"path", fs::absolute(path).lexically_normal().string()},
          {"device", facts.st_dev},
          {"inode", facts.st_ino},
          {"size", facts.st_size},
          {"modified", time(facts.st_mtim)},
          {"changed", time(facts.st_ctim)}};
}

CacheEntry cached(const CacheRequest& request) {
  const fs::path root = tokens_folder(request.source);
  constexpr size_t name_size = 32;
  // Names of files need not be UTF-8.
  const std::string key = request.key.dump(-1, ' ', true, json::error_handler_t::replace);
  const fs::path folder = root / sha256_hex(key).substr(0, name_size);
  const File lock = waited_lock(folder.string() + ".lock", request);
  if (fs::exists(folder)) try {
      return {folder, checked_facts(folder)};
    } catch (const std::exception& reason) {
      set_aside(folder, request, reason.what());
    }
  remove_stale_staging(root);
  StagedFolder staged(folder);
  const json facts = request.make(staged.path());
  write_facts(staged.path(), facts);
  staged.commit();
  return {folder, facts};
}

}  // namespace normlab
