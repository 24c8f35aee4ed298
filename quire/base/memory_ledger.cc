#include "quire/base/memory_ledger.h"

#include <utility>

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
    case MemoryTag::kWorkerScratch:
      return "worker scratch";
    case MemoryTag::kTokenizer:
      return "tokenizer";
    case MemoryTag::kHttp:
      return "http";
    case MemoryTag::kOther:
      return "other";
  }
  return "?";
}

void MemoryLedger::Entry::add(int64_t bytes) {
  allocated_.fetch_add(bytes);
  const int64_t now = current_.fetch_add(bytes) + bytes;
  int64_t peak = peak_.load();
  while (now > peak && !peak_.compare_exchange_weak(peak, now)) {
  }
}

void MemoryLedger::Entry::remove(int64_t bytes) {
  freed_.fetch_add(bytes);
  current_.fetch_sub(bytes);
}

MemoryCount MemoryLedger::Entry::count() const {
  return {.current = current_.load(),
          .peak = peak_.load(),
          .allocated = allocated_.load(),
          .freed = freed_.load()};
}

void MemoryLedger::Entry::reset_peak() {
  peak_.store(current_.load());
}

void MemoryLedger::add(MemoryTag tag, int64_t bytes) {
  entry(tag).add(bytes);
  total_.add(bytes);
}

void MemoryLedger::remove(MemoryTag tag, int64_t bytes) {
  entry(tag).remove(bytes);
  total_.remove(bytes);
}

int64_t MemoryLedger::current(MemoryTag tag) const {
  return entries_[static_cast<size_t>(tag)].count().current;
}

int64_t MemoryLedger::peak(MemoryTag tag) const {
  return entries_[static_cast<size_t>(tag)].count().peak;
}

MemorySnapshot MemoryLedger::snapshot() const {
  MemorySnapshot snapshot;
  for (size_t i = 0; i < entries_.size(); ++i) snapshot.tags[i] = entries_[i].count();
  snapshot.total = total_.count();
  return snapshot;
}

void MemoryLedger::reset_peaks() {
  for (Entry& one : entries_) one.reset_peak();
  total_.reset_peak();
}

LedgerEntry::LedgerEntry(MemoryLedger* ledger, MemoryTag tag, int64_t bytes)
    : ledger_(ledger), tag_(tag) {
  resize(bytes);
}

LedgerEntry::~LedgerEntry() {
  resize(0);
}

LedgerEntry::LedgerEntry(LedgerEntry&& other) noexcept {
  *this = std::move(other);
}

LedgerEntry& LedgerEntry::operator=(LedgerEntry&& other) noexcept {
  if (this == &other) return *this;
  resize(0);
  ledger_ = std::exchange(other.ledger_, nullptr);
  tag_ = other.tag_;
  bytes_ = std::exchange(other.bytes_, 0);
  return *this;
}

void LedgerEntry::resize(int64_t bytes) {
  if (ledger_ != nullptr) {
    if (bytes > bytes_) ledger_->add(tag_, bytes - bytes_);
    if (bytes < bytes_) ledger_->remove(tag_, bytes_ - bytes);
  }
  bytes_ = bytes;
}

}  // namespace quire
