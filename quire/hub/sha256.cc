#include "quire/hub/sha256.h"

#include <openssl/evp.h>

#include <fmt/format.h>

#include "quire/base/check.h"

namespace quire::hub {

struct Sha256::State {
  EVP_MD_CTX* context = EVP_MD_CTX_new();
  ~State() { EVP_MD_CTX_free(context); }
};

Sha256::Sha256() : state_(std::make_unique<State>()) {
  QUIRE_CHECK(state_->context != nullptr);
  QUIRE_CHECK(EVP_DigestInit_ex(state_->context, EVP_sha256(), nullptr) == 1);
}

Sha256::~Sha256() = default;

void Sha256::update(std::span<const std::byte> bytes) {
  QUIRE_CHECK(EVP_DigestUpdate(state_->context, bytes.data(), bytes.size()) == 1);
}

std::string Sha256::finish() {
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned length = 0;
  QUIRE_CHECK(EVP_DigestFinal_ex(state_->context, digest, &length) == 1);
  return fmt::format("{:02x}", fmt::join(digest, digest + length, ""));
}

}  // namespace quire::hub
