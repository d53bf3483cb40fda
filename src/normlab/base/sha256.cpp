// SHA-256 by OpenSSL.
#include "normlab/base/sha256.h"

#include <openssl/evp.h>

#include <memory>
#include <vector>

#include "normlab/base/error.h"
#include "normlab/base/file.h"

namespace normlab {
namespace {

class Sha256 {
 public:
  Sha256() : context_(EVP_MD_CTX_new(), EVP_MD_CTX_free) {
    check(context_ && EVP_DigestInit_ex(context_.get(), EVP_sha256(), nullptr) == 1);
  }
  void add(std::string_view bytes) { check(EVP_DigestUpdate(context_.get(), bytes.data(), bytes.size()) == 1); }
  std::string hex() {
    unsigned char digest[EVP_MAX_MD_SIZE];
    unsigned size = 0;
    check(EVP_DigestFinal_ex(context_.get(), digest, &size) == 1);
    std::string out;
    for (unsigned i = 0; i < size; ++i) {
      out += "0123456789abcdef"[digest[i] >> 4];
      out += "0123456789abcdef"[digest[i] & 15];
    }
    return out;
  }

 private:
  static void check(bool done) {
    if (!done) throw Error("sha256", "OpenSSL failed; is its default provider installed?");
  }
  std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> context_;
};

}  // namespace

std::string sha256_hex(std::string_view content) {
  Sha256 sum;
  sum.add(content);
  return sum.hex();
}

std::string sha256_file(const std::filesystem::path& path) {
  File file = File::open_to_read(path);
  std::vector<char> buffer(1 << 20);
  Sha256 sum;
  while (const size_t count = file.read(buffer.data(), buffer.size())) sum.add({buffer.data(), count});
  return sum.hex();
}

}  // namespace normlab
