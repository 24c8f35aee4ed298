// Sha256: the SHA-256 digest of bytes that come in parts.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>

namespace quire::hub {

class Sha256 {
 public:
  Sha256();
  ~Sha256();
  Sha256(const Sha256&) = delete;
  Sha256& operator=(const Sha256&) = delete;

  void update(std::span<const std::byte> bytes);
  /// 64 lower-case hexadecimal digits. Ends the computation.
  std::string finish();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace quire::hub
