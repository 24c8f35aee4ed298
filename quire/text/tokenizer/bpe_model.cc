#include "quire/text/tokenizer/bpe_model.h"

#include <algorithm>
#include <bit>
#include <functional>

#include "quire/base/check.h"
#include "quire/base/error.h"
#include "quire/text/tokenizer/byte_alphabet.h"

namespace quire::text {
namespace {

// Up to this length a scan for the lowest rank is faster than a queue.
constexpr size_t kShortPiece = 48;
constexpr uint32_t kNone = UINT32_MAX;

int32_t known_token(const Vocabulary& vocabulary, std::string_view content, size_t rank) {
  const int32_t id = vocabulary.find_content(content);
  if (id < 0) {
    throw LoadError("tokenizer", "merge " + std::to_string(rank), "tokens of the vocabulary",
                    content);
  }
  return id;
}

}  // namespace

MergeTable::MergeTable(size_t count) {
  const size_t size = std::bit_ceil(2 * count + 2);
  slots_.resize(size);
  mask_ = size - 1;
  shift_ = 64 - static_cast<unsigned>(std::countr_zero(size));
}

void MergeTable::insert(int32_t left, int32_t right, Merge merge) {
  const uint64_t key = key_of(left, right);
  size_t slot = slot_of(key);
  while (slots_[slot].key != kFree && slots_[slot].key != key) slot = (slot + 1) & mask_;
  slots_[slot] = {key, merge};
}

BpeModel::BpeModel(const TokenizerSpec& spec, const Vocabulary& vocabulary)
    : vocabulary_(vocabulary),
      merges_(spec.merges.size()),
      ignore_merges_(spec.ignore_merges),
      fuse_missing_(spec.fuse_missing_bytes),
      missing_id_(spec.missing_byte_id.value_or(-1)),
      whole_(std::make_unique<std::atomic<Whole>[]>(spec.vocab.size())) {
  if (missing_id_ != -1 && !vocabulary.contains(missing_id_)) {
    throw LoadError("tokenizer", "missing_byte_id", "an id of the vocabulary",
                    std::to_string(missing_id_));
  }
  for (unsigned byte = 0; byte < 256; ++byte) {
    byte_ids_[byte] = vocabulary.find_content(byte_character(static_cast<uint8_t>(byte)));
  }
  std::string merged;
  for (size_t rank = 0; rank < spec.merges.size(); ++rank) {
    const auto& [left, right] = spec.merges[rank];
    merged = left;
    merged += right;
    merges_.insert(known_token(vocabulary, left, rank), known_token(vocabulary, right, rank),
                   {static_cast<uint32_t>(rank), known_token(vocabulary, merged, rank)});
  }
}

void BpeModel::encode(std::string_view piece, Workspace& workspace,
                      std::vector<int32_t>& ids) const {
  const int32_t whole = vocabulary_.find_bytes(piece);
  if (whole < 0) return merge(piece, workspace, ids);
  std::atomic<Whole>& known = whole_[static_cast<size_t>(whole)];
  if (ignore_merges_ || known.load(std::memory_order_relaxed) == Whole::kYes) {
    ids.push_back(whole);
    return;
  }
  const size_t before = ids.size();
  merge(piece, workspace, ids);
  const bool same = ids.size() == before + 1 && ids.back() == whole;
  known.store(same ? Whole::kYes : Whole::kNo, std::memory_order_relaxed);
}

void BpeModel::merge(std::string_view piece, Workspace& workspace,
                     std::vector<int32_t>& ids) const {
  if (piece.size() <= kShortPiece) {
    merge_short(piece, ids);
  } else {
    merge_long(piece, workspace, ids);
  }
}

/// Writes the ids of the bytes of `piece` and returns their number.
size_t BpeModel::start_symbols(std::string_view piece, int32_t* ids) const {
  size_t count = 0;
  bool missed = false;  // the byte before has no token either
  for (const char byte : piece) {
    const int32_t id = byte_ids_[static_cast<uint8_t>(byte)];
    if (id >= 0) {
      ids[count++] = id;
    } else if (missing_id_ >= 0 && !(missed && fuse_missing_)) {
      ids[count++] = missing_id_;
    }
    missed = id < 0;
  }
  return count;
}

void BpeModel::merge_short(std::string_view piece, std::vector<int32_t>& ids) const {
  std::array<int32_t, kShortPiece> symbols;
  std::array<MergeTable::Merge, kShortPiece> merges;  // of symbol i with the one after it
  size_t count = start_symbols(piece, symbols.data());
  for (size_t i = 0; i + 1 < count; ++i) merges[i] = merges_.find(symbols[i], symbols[i + 1]);
  while (count > 1) {
    size_t best = 0;
    for (size_t i = 1; i + 1 < count; ++i) {
      if (merges[i].rank < merges[best].rank) best = i;
    }
    if (merges[best].rank == MergeTable::kNoMerge) break;
    symbols[best] = merges[best].id;
    std::copy(&symbols[best + 2], symbols.data() + count, &symbols[best + 1]);
    std::copy(&merges[best + 1], merges.data() + count - 1, &merges[best]);
    --count;
    if (best > 0) merges[best - 1] = merges_.find(symbols[best - 1], symbols[best]);
    if (best + 1 < count) merges[best] = merges_.find(symbols[best], symbols[best + 1]);
  }
  ids.insert(ids.end(), symbols.begin(), symbols.begin() + static_cast<ptrdiff_t>(count));
}

void BpeModel::merge_long(std::string_view piece, Workspace& workspace,
                          std::vector<int32_t>& ids) const {
  QUIRE_CHECK(piece.size() < kNone);
  const size_t before = ids.size();
  ids.resize(before + piece.size());
  const size_t count = start_symbols(piece, ids.data() + before);
  auto& symbols = workspace.symbols;
  auto& queue = workspace.queue;
  symbols.resize(count);
  queue.clear();
  for (uint32_t i = 0; i < count; ++i) {
    symbols[i] = {ids[before + i], i == 0 ? kNone : i - 1, i + 1 == count ? kNone : i + 1};
  }
  ids.resize(before);

  const auto entry = [&](uint32_t at) {
    const uint32_t next = symbols[at].next;
    const uint32_t rank =
        next == kNone ? MergeTable::kNoMerge : merges_.find(symbols[at].id, symbols[next].id).rank;
    return (uint64_t{rank} << 32) | at;
  };
  const auto merges_at_all = [](uint64_t value) { return value >> 32 != MergeTable::kNoMerge; };
  const auto push = [&](uint32_t at) {
    const uint64_t value = entry(at);
    if (!merges_at_all(value)) return;
    queue.push_back(value);
    std::push_heap(queue.begin(), queue.end(), std::greater<>());
  };
  for (uint32_t i = 0; i < count; ++i) {
    if (const uint64_t value = entry(i); merges_at_all(value)) queue.push_back(value);
  }
  std::make_heap(queue.begin(), queue.end(), std::greater<>());
  while (!queue.empty()) {
    std::pop_heap(queue.begin(), queue.end(), std::greater<>());
    const uint64_t top = queue.back();
    queue.pop_back();
    const auto at = static_cast<uint32_t>(top);
    // An entry is out of date when its left symbol is gone or either one was merged since.
    if (symbols[at].id < 0 || entry(at) != top) continue;
    const uint32_t right = symbols[at].next;
    symbols[at].id = merges_.find(symbols[at].id, symbols[right].id).id;
    symbols[right].id = -1;
    symbols[at].next = symbols[right].next;
    if (symbols[at].next != kNone) symbols[symbols[at].next].previous = at;
    if (symbols[at].previous != kNone) push(symbols[at].previous);
    push(at);
  }
  for (uint32_t i = 0; i < count; i = symbols[i].next) ids.push_back(symbols[i].id);
}

int64_t BpeModel::heap_size() const {
  return merges_.heap_size() + heap_block(static_cast<size_t>(vocabulary_.size()) * sizeof(Whole));
}

}  // namespace quire::text
