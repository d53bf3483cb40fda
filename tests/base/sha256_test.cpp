// SHA-256 against the examples of FIPS 180-4.
#include "normlab/base/sha256.h"

#include <gtest/gtest.h>

#include "normlab/base/error.h"
#include "normlab/base/file.h"
#include "sandbox.h"

namespace normlab {
namespace {

TEST(Sha256, KnownSums) {
  EXPECT_EQ(sha256_hex(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(sha256_hex("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

TEST(Sha256, FileOfAMillionLetters) {
  TemporaryFolder folder;
  write_file_atomically(folder / "a", std::string(1000000, 'a'));
  EXPECT_EQ(sha256_file(folder / "a"), "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
  write_file_atomically(folder / "b", std::string((1 << 20) + 1, 'b'));
  EXPECT_EQ(sha256_file(folder / "b"), sha256_hex(std::string((1 << 20) + 1, 'b')));
  EXPECT_THROW(sha256_file(folder / "missing"), DataError);
}

}  // namespace
}  // namespace normlab
