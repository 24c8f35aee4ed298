// heap_bytes: what containers take on the heap, so that a tokenizer can tell its size.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace quire::text {

/// Bytes the allocator takes for a block of `bytes`: a header of 8, in steps of 16, 32 at least
/// (glibc's chunks).
constexpr int64_t heap_block(size_t bytes) {
  if (bytes == 0) return 0;
  const auto chunk = static_cast<int64_t>((bytes + 8 + 15) / 16 * 16);
  return chunk < 32 ? 32 : chunk;
}

inline int64_t heap_bytes(const std::string& text) {
  constexpr size_t kInside = 15;  // shorter ones lie in the object itself
  return text.capacity() > kInside ? heap_block(text.capacity() + 1) : 0;
}

/// Without what the elements own.
template <typename T>
int64_t heap_bytes(const std::vector<T>& list) {
  return heap_block(list.capacity() * sizeof(T));
}

inline int64_t heap_bytes(const std::vector<bool>& bits) {
  return heap_block(bits.capacity() / 8);
}

}  // namespace quire::text
