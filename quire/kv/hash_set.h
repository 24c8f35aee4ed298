// HashSet: the block hashes spoken for in one step; emptied in O(1), and nothing is allocated after
// construction.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "quire/kv/block_hash.h"

namespace quire::kv {

class HashSet {
 public:
  /// Holds up to `capacity` hashes; further ones are not taken in.
  explicit HashSet(size_t capacity)
      : slots_(std::bit_ceil(2 * capacity + 2)), capacity_(capacity) {}

  void clear() {
    ++epoch_;
    size_ = 0;
  }
  void insert(const BlockHash& hash) {
    if (size_ == capacity_) return;
    Slot& slot = slots_[place(hash)];
    if (slot.epoch == epoch_) return;
    slot = {.hash = hash, .epoch = epoch_};
    ++size_;
  }
  bool contains(const BlockHash& hash) const {
    return size_ > 0 && slots_[place(hash)].epoch == epoch_;
  }

 private:
  struct Slot {
    BlockHash hash;
    uint64_t epoch = 0;
  };

  /// Where `hash` is, or would go.
  size_t place(const BlockHash& hash) const {
    size_t i = hash.low & (slots_.size() - 1);
    while (slots_[i].epoch == epoch_ && !(slots_[i].hash == hash))
      i = (i + 1) & (slots_.size() - 1);
    return i;
  }

  std::vector<Slot> slots_;
  size_t capacity_;
  size_t size_ = 0;
  uint64_t epoch_ = 1;
};

}  // namespace quire::kv
