// Files: whole reads, appends, atomic writes, and the messages when the system refuses.
#include "normlab/base/file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <thread>

#include "normlab/base/error.h"
#include "normlab/base/text.h"
#include "sandbox.h"

namespace normlab {
namespace {

using testing::HasSubstr;

template <class Failure, class Body>
std::string message_of(Body body) {
  try {
    body();
  } catch (const Failure& failure) {
    return failure.what();
  }
  return "no error";
}

TEST(File, ReadsWhatWasWritten) {
  TemporaryFolder folder;
  for (const size_t size : {0, 1, 65535, 65536, 65537, 300001}) {
    std::string content(size, 'x');
    for (size_t i = 0; i < size; ++i) content[i] = static_cast<char>(i * 7 + i / 256);
    write_file_atomically(folder / "file", content);
    EXPECT_EQ(read_file(folder / "file"), content);
  }
  EXPECT_EQ(folder.count_entries(), 1u);
}

TEST(File, ReadsFilesOfUnknownSize) { EXPECT_THAT(read_file("/proc/self/status"), HasSubstr("Pid:")); }

TEST(File, SaysWhyItCannotRead) {
  TemporaryFolder folder;
  const auto read = [&](const char* name) { return message_of<DataError>([&] { read_file(folder / name); }); };
  EXPECT_EQ(read("missing"),
            concat("[", (folder / "missing").string(), "] cannot open the file: No such file or directory."));
  EXPECT_THAT(read(""), HasSubstr("is a folder, expected a file"));
  write_file_atomically(folder / "file", "x");
  EXPECT_THAT(read("file/below"), HasSubstr("Not a directory"));
}

TEST(File, AppendKeepsWhatIsThere) {
  TemporaryFolder folder;
  File::append(folder / "log").write("one\n");
  File::append(folder / "log").write("two\n");
  EXPECT_EQ(read_file(folder / "log"), "one\ntwo\n");
}

TEST(File, AtomicWriteReplacesAndHonoursTheUmask) {
  TemporaryFolder folder;
  write_file_atomically(folder / "file", "old");
  write_file_atomically(folder / "file", "new");
  EXPECT_EQ(read_file(folder / "file"), "new");
  const mode_t mask = ::umask(0);
  ::umask(mask);
  struct stat facts {};
  ASSERT_EQ(::stat((folder / "file").c_str(), &facts), 0);
  EXPECT_EQ(facts.st_mode & 0777, 0666u & ~mask);
}

TEST(File, AtomicWriteNamesTheFileItCannotWrite) {
  TemporaryFolder folder;
  const auto target = folder / "no/file";
  EXPECT_EQ(message_of<Error>([&] { write_file_atomically(target, "x"); }),
            concat("[", target.string(), "] cannot create the file: No such file or directory."));
  std::filesystem::create_directory(folder / "taken");
  EXPECT_THAT(message_of<Error>([&] { write_file_atomically(folder / "taken", "x"); }), HasSubstr("Is a directory"));
  EXPECT_EQ(folder.count_entries(), 1u);
}

TEST(File, FullDiskLeavesTheOldContentAndNoScraps) {
  TemporaryFolder folder;
  write_file_atomically(folder / "file", "old");
  const int status = run_in_child([&] {
    ::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{100000, 100000};
    ::setrlimit(RLIMIT_FSIZE, &limit);
    const std::string message =
        message_of<Error>([&] { write_file_atomically(folder / "file", std::string(1 << 20, 'x')); });
    const std::string expected = concat("[", (folder / "file").string(),
                                        "] cannot write the file: File too large. Free some space, then retry.");
    return message == expected ? 0 : 1;
  });
  EXPECT_TRUE(exited_with(status, 0));
  EXPECT_EQ(read_file(folder / "file"), "old");
  EXPECT_EQ(folder.count_entries(), 1u);
}

TEST(File, ParallelWritersLeaveOneWholeFile) {
  TemporaryFolder folder;
  std::vector<std::thread> writers;
  for (char letter = 'a'; letter < 'e'; ++letter) {
    writers.emplace_back([&folder, letter] {
      for (int i = 0; i < 20; ++i) write_file_atomically(folder / "file", std::string(50000, letter));
    });
  }
  for (auto& writer : writers) writer.join();
  const std::string content = read_file(folder / "file");
  EXPECT_EQ(content, std::string(50000, content[0]));
  EXPECT_EQ(folder.count_entries(), 1u);
}

TEST(File, ReadsRegularFilesOnly) {
  TemporaryFolder folder;
  ASSERT_EQ(::mkfifo((folder / "pipe").c_str(), 0600), 0);
  const auto read = [](const std::filesystem::path& path) { return message_of<DataError>([&] { read_file(path); }); };
  EXPECT_THAT(read(folder / "pipe"), HasSubstr("is not a regular file"));
  EXPECT_THAT(read("/dev/zero"), HasSubstr("is not a regular file"));
}

TEST(File, ReadsAPipeThatTheCallerOpened) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  ASSERT_EQ(::write(ends[1], "text", 4), 4);
  ::close(ends[1]);
  EXPECT_EQ(read_file(concat("/dev/fd/", ends[0])), "text");
  ::close(ends[0]);
}

}  // namespace
}  // namespace normlab
