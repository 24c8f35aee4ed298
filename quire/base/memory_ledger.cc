#include "quire/base/memory_ledger.h"

namespace quire {

std::string_view memory_tag_name(MemoryTag tag) {
  switch (tag) {
    case MemoryTag::kWeights:
      return "weights";
    case MemoryTag::kPackedCopies:
      return "packed copies";
    case MemoryTag::kKvCache:
      return "kv cache";
    case MemoryTag::kSwapSpace:
      return "swap space";
    case MemoryTag::kArena:
      return "arena";
    case MemoryTag::kTokenizer:
      return "tokenizer";
    case MemoryTag::kOther:
      return "other";
  }
  return "?";
}

void MemoryLedger::add(MemoryTag tag, int64_t bytes) {
  Entry& entry = entries_[static_cast<size_t>(tag)];
  int64_t now = entry.current.fetch_add(bytes) + bytes;
  int64_t peak = entry.peak.load();
  while (now > peak && !entry.peak.compare_exchange_weak(peak, now)) {
  }
}

void MemoryLedger::remove(MemoryTag tag, int64_t bytes) {
  entries_[static_cast<size_t>(tag)].current.fetch_sub(bytes);
}

int64_t MemoryLedger::current(MemoryTag tag) const {
  return entries_[static_cast<size_t>(tag)].current.load();
}

int64_t MemoryLedger::peak(MemoryTag tag) const {
  return entries_[static_cast<size_t>(tag)].peak.load();
}

}  // namespace quire
