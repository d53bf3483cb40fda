// Whose requests are answered.
#include "normlab/serve/http_server.h"

#include <gmock/gmock.h>

#include "normlab/base/error.h"

namespace normlab {
namespace {

TEST(HttpServer, OnLoopbackOnlyLoopbackNamesCount) {
  for (const char* host : {"127.0.0.1", "127.0.0.1:8750", "localhost:1", "LOCALHOST", "[::1]:8750", "127.1.2.3:80"})
    EXPECT_TRUE(host_is_allowed(host, "127.0.0.1")) << host;
  for (const char* host : {"", "evil.example", "evil.example:8750", "127.0.0.1.evil.example", "localhost.evil.example",
                           "192.168.1.5:8750", "[::2]:8750", "127.0.0.1@evil.example", "0.0.0.0:8750", "[", "]", ":"})
    EXPECT_FALSE(host_is_allowed(host, "127.0.0.1")) << host;
}

TEST(HttpServer, ElsewhereAddressesAndItsOwnNameCount) {
  for (const char* host : {"192.168.1.5:8750", "[fe80::1]:8750", "lab.example", "Lab.Example:80", "localhost"})
    EXPECT_TRUE(host_is_allowed(host, "lab.example")) << host;
  for (const char* host : {"evil.example", "192.168.1.5.evil.example", ""})
    EXPECT_FALSE(host_is_allowed(host, "lab.example")) << host;
}

TEST(HttpServer, TwoServersDoNotShareAPort) {
  const auto none = [](const std::string&) { return Answer{}; };
  const HttpServer::Handlers nothing{none, none};
  const HttpServer first({.host = "127.0.0.1", .port = 0}, nothing);
  EXPECT_GT(first.port(), 0);
  EXPECT_EQ(first.link(), "http://127.0.0.1:" + std::to_string(first.port()) + "/");
  try {
    const HttpServer second({.host = "127.0.0.1", .port = first.port()}, nothing);
    ADD_FAILURE() << "both listen";
  } catch (const UsageError& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("choose another --port"));
  }
}

}  // namespace
}  // namespace normlab
