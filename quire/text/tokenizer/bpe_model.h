// BpeModel: turns the bytes of one pre-tokenized piece into ids by byte-pair merges.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "quire/text/tokenizer/heap_bytes.h"
#include "quire/text/tokenizer/vocabulary.h"
#include "quire/text/tokenizer_spec.h"

namespace quire::text {

/// Open-addressed table from a pair of ids to the merge of it.
class MergeTable {
 public:
  struct Merge {
    uint32_t rank = kNoMerge;
    int32_t id = -1;  // of the merged token
  };
  static constexpr uint32_t kNoMerge = UINT32_MAX;

  explicit MergeTable(size_t count);
  /// A later merge of the same pair takes the place of the former, as in HF.
  void insert(int32_t left, int32_t right, Merge merge);
  /// Rank kNoMerge when the pair does not merge.
  Merge find(int32_t left, int32_t right) const {
    const uint64_t key = key_of(left, right);
    for (size_t slot = slot_of(key);; slot = (slot + 1) & mask_) {
      if (slots_[slot].key == key) return slots_[slot].merge;
      if (slots_[slot].key == kFree) return {};
    }
  }
  int64_t heap_size() const { return heap_bytes(slots_); }

 private:
  static constexpr uint64_t kFree = UINT64_MAX;
  struct Slot {
    uint64_t key = kFree;
    Merge merge;
  };

  static uint64_t key_of(int32_t left, int32_t right) {
    return (uint64_t{static_cast<uint32_t>(left)} << 32) | static_cast<uint32_t>(right);
  }
  size_t slot_of(uint64_t key) const {
    return static_cast<size_t>((key * 0x9E3779B97F4A7C15u) >> shift_);
  }

  std::vector<Slot> slots_;
  size_t mask_ = 0;
  unsigned shift_ = 0;
};

/// encode() may be called from several threads at once, each with its own Workspace.
class BpeModel {
 public:
  /// Memory for pieces that are too long for the stack.
  struct Workspace {
    struct Symbol {
      int32_t id;
      uint32_t previous;
      uint32_t next;
    };
    std::vector<Symbol> symbols;
    std::vector<uint64_t> queue;  // a heap of rank << 32 | position, lowest first
  };

  /// Throws LoadError when a merge names a token that is not in the vocabulary. `vocabulary` must
  /// outlive the model.
  BpeModel(const TokenizerSpec& spec, const Vocabulary& vocabulary);

  /// Appends the ids of `piece`. O(n log n) in its length.
  void encode(std::string_view piece, Workspace& workspace, std::vector<int32_t>& ids) const;
  /// Bytes of the heap that the tables take.
  int64_t heap_size() const;

 private:
  enum class Whole : uint8_t { kUnknown, kYes, kNo };

  void merge_short(std::string_view piece, std::vector<int32_t>& ids) const;
  void merge_long(std::string_view piece, Workspace& workspace, std::vector<int32_t>& ids) const;
  size_t start_symbols(std::string_view piece, int32_t* ids) const;
  void merge(std::string_view piece, Workspace& workspace, std::vector<int32_t>& ids) const;

  const Vocabulary& vocabulary_;
  MergeTable merges_;
  bool ignore_merges_;
  bool fuse_missing_;
  int32_t missing_id_;  // for a byte without a token; -1: such bytes are dropped
  std::array<int32_t, 256> byte_ids_{};
  // By id: whether the merges turn the token's bytes into this one token; found out on first use.
  // Writers agree on the value, so relaxed order suffices.
  std::unique_ptr<std::atomic<Whole>[]> whole_;
};

}  // namespace quire::text
