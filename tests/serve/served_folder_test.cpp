// Which folders an address can name.
#include "normlab/serve/served_folder.h"

#include <gtest/gtest.h>

#include "normlab/base/error.h"
#include "sandbox.h"

namespace normlab {
namespace {

namespace fs = std::filesystem;

class Served : public testing::Test {
 protected:
  Served() {
    fs::create_directories(outer / "served/studies/a b");
    fs::create_directories(outer / "served/%2e%2e");
    fs::create_directories(outer / "served-too/secret");
    fs::create_directory_symlink(outer / "served-too", outer / "served/out");
    fs::create_directory_symlink(outer / "served/studies", outer / "served/in");
  }
  bool finds(std::string_view path) const { return ServedFolder(outer / "served").find(path).has_value(); }
  TemporaryFolder outer;
};

TEST_F(Served, FindsWhatIsInIt) {
  const ServedFolder folder(outer / "served");
  EXPECT_EQ(folder.find(""), folder.root());
  EXPECT_EQ(folder.find("studies/a%20b"), folder.root() / "studies/a b");
  EXPECT_EQ(folder.relative(*folder.find("studies/a%20b")), "studies/a b");
  EXPECT_EQ(folder.find("%73tudies"), folder.root() / "studies");
  EXPECT_TRUE(folder.find("in/a b"));  // a link that stays inside
  EXPECT_EQ(folder.name(), "served");
}

TEST_F(Served, FindsNothingOutside) {
  for (const char* path : {"..",
                           "../served-too",
                           "%2e%2e/served-too",
                           "%2E%2E%2fserved-too",
                           "studies/../../served-too",
                           "..%2fserved-too",
                           "out",
                           "out/secret",
                           "./studies",
                           "studies/.",
                           "/etc",
                           "//etc",
                           "studies//a b",
                           "studies/",
                           "%00",
                           "studies%00",
                           "%2fetc",
                           "%252e%252e/served-too",
                           "%",
                           "%2",
                           "%zz",
                           "\\..\\",
                           "nothing",
                           "..;/served-too"})
    EXPECT_FALSE(finds(path)) << path;
  EXPECT_TRUE(finds("%252e%252e"));  // a folder of this very name
}

TEST_F(Served, TheNameOfANeighbourThatStartsAlikeIsOutside) {
  EXPECT_FALSE(ServedFolder(outer / "served").holds(outer / "served-too/secret"));
  EXPECT_FALSE(ServedFolder(outer / "served").holds(outer / "missing"));
}

TEST_F(Served, EncodedPathsAreFoundAgain) {
  const std::string name = "odd %41 <b>&\"'?#;\xC3\xA4 name";
  fs::create_directories(outer / "served" / name);
  EXPECT_TRUE(finds(percent_encode(name)));
  EXPECT_EQ(percent_decode(percent_encode(name)), name);
}

TEST_F(Served, IsAFolder) { EXPECT_THROW(ServedFolder(outer / "missing"), UsageError); }

}  // namespace
}  // namespace normlab
