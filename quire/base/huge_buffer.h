// HugeBuffer: zeroed, 2 MiB-aligned memory advised for huge pages; pages cost nothing until
// touched.
#pragma once

#include <cstddef>
#include <cstdint>

#include "quire/base/memory_ledger.h"

namespace quire {

/// Owns one anonymous mapping. Move-only. Throws LoadError when the system refuses.
class HugeBuffer {
 public:
  HugeBuffer() = default;
  /// Reserves `bytes` (rounded up to 2 MiB once above 1 MiB). `ledger` may be null.
  HugeBuffer(int64_t bytes, MemoryTag tag, MemoryLedger* ledger);
  ~HugeBuffer();
  HugeBuffer(HugeBuffer&& other) noexcept;
  HugeBuffer& operator=(HugeBuffer&& other) noexcept;
  HugeBuffer(const HugeBuffer&) = delete;
  HugeBuffer& operator=(const HugeBuffer&) = delete;

  std::byte* data() const { return data_; }
  int64_t size() const { return size_; }

 private:
  void release();

  std::byte* data_ = nullptr;
  int64_t size_ = 0;
  int64_t mapped_ = 0;
  MemoryTag tag_ = MemoryTag::kOther;
  MemoryLedger* ledger_ = nullptr;
};

}  // namespace quire
