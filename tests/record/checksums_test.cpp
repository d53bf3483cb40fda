// Checksums of a checkpoint: every flipped bit is noticed.
#include "normlab/record/checksums.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "normlab/base/error.h"
#include "normlab/base/file.h"
#include "normlab/base/text.h"
#include "sandbox.h"

namespace normlab {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class Checksums : public testing::Test {
 protected:
  Checksums() {
    write_file_atomically(folder_ / "model.safetensors", "weights");
    write_file_atomically(folder_ / "optimizer.safetensors", "moments");
    write_file_atomically(folder_ / "state.json", "{}");
    write_checksums(folder_.path());
  }
  TemporaryFolder folder_;
};

TEST_F(Checksums, AreThoseOfSha256sum) {
  EXPECT_EQ(std::system(concat("cd '", folder_.path().string(), "' && sha256sum --check --status SHA256SUMS").c_str()),
            0);
  EXPECT_THAT(checksum_faults(folder_.path()), IsEmpty());
  require_checksums(folder_.path());
}

TEST_F(Checksums, NoticeEveryFlippedBit) {
  for (size_t bit = 0; bit < 8 * std::string("moments").size(); ++bit) {
    std::string content = "moments";
    content[bit / 8] = static_cast<char>(content[bit / 8] ^ (1 << bit % 8));
    write_file_atomically(folder_ / "optimizer.safetensors", content);
    EXPECT_THAT(checksum_faults(folder_.path()), ElementsAre(HasSubstr("optimizer.safetensors has changed")));
    EXPECT_THROW(require_checksums(folder_.path()), DataError);
  }
}

TEST_F(Checksums, OfStateAndOfMissingFilesDoNotMatter) {
  write_file_atomically(folder_ / "state.json", "{\"step\": 1}");
  std::filesystem::remove(folder_ / "optimizer.safetensors");
  EXPECT_THAT(checksum_faults(folder_.path()), IsEmpty());
  std::filesystem::remove(folder_ / "SHA256SUMS");  // as written by an earlier version
  EXPECT_THAT(checksum_faults(folder_.path()), IsEmpty());
}

TEST_F(Checksums, ThatAreDamagedAreFaults) {
  for (const char* text : {"x", "", "0123  ../../etc/passwd"}) {
    write_file_atomically(folder_ / "SHA256SUMS", text);
    EXPECT_THAT(checksum_faults(folder_.path()), ElementsAre(HasSubstr("not a checksum"))) << text;
  }
}

TEST(Seal, NoticesEveryChange) {
  nlohmann::json state = {{"step", 20}, {"val_loss", 0.1}, {"text", "x"}};
  EXPECT_TRUE(is_intact(state));
  seal(state);
  EXPECT_TRUE(is_intact(nlohmann::json::parse(state.dump(2))));
  for (const char* key : {"step", "val_loss", "text", "sha256"}) {
    nlohmann::json changed = state;
    changed[key] = 21;
    EXPECT_FALSE(is_intact(changed)) << key;
  }
  state["step"] = 40;
  seal(state);
  EXPECT_TRUE(is_intact(state));
}

}  // namespace
}  // namespace normlab
