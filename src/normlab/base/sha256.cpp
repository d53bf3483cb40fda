// SHA-256 by OpenSSL.
#include "normlab/base/sha256.h"

#include <openssl/evp.h>

#include <vector>

#include "normlab/base/error.h"
#include "normlab/base/file.h"

namespace normlab {
namespace {

void require_openssl(bool done) {
  if (!done) throw Error("sha256", "OpenSSL failed; is its default provider installed?");
}

}  // namespace

struct Sha256::State {
  std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> context{EVP_MD_CTX_new(), EVP_MD_CTX_free};
};

Sha256::Sha256() : state_(std::make_unique<State>()) {
  require_openssl(state_->context && EVP_DigestInit_ex(state_->context.get(), EVP_sha256(), nullptr) == 1);
}
Sha256::~Sha256() = default;
Sha256::Sha256(Sha256&&) noexcept = default;
Sha256& Sha256::operator=(Sha256&&) noexcept = default;

void Sha256::add(std::string_view bytes) {
  require_openssl(EVP_DigestUpdate(state_->context.get(), bytes.data(), bytes.size()) == 1);
}

std::string Sha256::hex() {
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned size = 0;
  require_openssl(EVP_DigestFinal_ex(state_->context.get(), digest, &size) == 1);
  std::string out;
  for (unsigned i = 0; i < size; ++i) {
    out += "0123456789abcdef"[digest[i] >> 4];
    out += "0123456789abcdef"[digest[i] & 15];
  }
  return out;
}

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
