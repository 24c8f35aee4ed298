#include "quire/runner/tier_index.h"

#include <bit>
#include <cstring>
#include <type_traits>
#include <unordered_set>

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace quire::runner {
namespace {

static_assert(std::endian::native == std::endian::little);

constexpr char kMagic[8] = {'Q', 'U', 'I', 'R', 'E', 'K', 'V', 'T'};
constexpr uint32_t kVersion = 1;
constexpr size_t kMaxKeyBytes = 1 << 16;

class Writer {
 public:
  template <typename T>
  void put(const T& value) {
    static_assert(std::is_trivially_copyable_v<T>);
    put_bytes(&value, sizeof(value));
  }
  void put_bytes(const void* data, size_t size) {
    bytes_.append(static_cast<const char*>(data), size);
  }
  std::string& bytes() { return bytes_; }

 private:
  std::string bytes_;
};

class Reader {
 public:
  explicit Reader(std::span<const std::byte> bytes) : bytes_(bytes) {}

  /// False, and `value` as it was, where fewer bytes are left.
  template <typename T>
  [[nodiscard]] bool get(T& value) {
    static_assert(std::is_trivially_copyable_v<T>);
    return get_bytes(&value, sizeof(value));
  }
  [[nodiscard]] bool get_bytes(void* data, size_t size) {
    if (size > left()) return false;
    if (size > 0) std::memcpy(data, bytes_.data() + at_, size);
    at_ += size;
    return true;
  }
  size_t left() const { return bytes_.size() - at_; }

 private:
  std::span<const std::byte> bytes_;
  size_t at_ = 0;
};

size_t entry_bytes(uint32_t block_tokens) {
  return sizeof(uint32_t) + 4 * sizeof(uint64_t) + block_tokens * sizeof(int32_t) +
         sizeof(uint64_t);
}

bool read_entry(Reader& reader, TierEntry& entry) {
  uint32_t block = 0;
  const bool whole = reader.get(block) && reader.get(entry.hash.low) &&
                     reader.get(entry.hash.high) && reader.get(entry.parent.low) &&
                     reader.get(entry.parent.high) &&
                     reader.get_bytes(entry.tokens.data(), entry.tokens.size() * sizeof(int32_t)) &&
                     reader.get(entry.checksum);
  entry.block = static_cast<int32_t>(block);
  return whole && entry.block >= 0;
}

bool read_entries(Reader& reader, uint32_t count, TierIndex& index) {
  std::unordered_set<int32_t> seen;
  for (uint32_t i = 0; i < count; ++i) {
    TierEntry entry;
    entry.tokens.resize(static_cast<size_t>(index.block_tokens));
    if (!read_entry(reader, entry) || !seen.insert(entry.block).second) return false;
    index.entries.push_back(std::move(entry));
  }
  return true;
}

}  // namespace

uint64_t checksum_of(std::span<const std::byte> bytes) {
  return XXH3_64bits(bytes.data(), bytes.size());
}

std::string encode_tier_index(const TierIndex& index) {
  Writer writer;
  writer.put(kMagic);
  writer.put(kVersion);
  writer.put(static_cast<uint32_t>(index.key.size()));
  writer.put_bytes(index.key.data(), index.key.size());
  writer.put(index.cache_seed);
  writer.put(static_cast<uint32_t>(index.block_tokens));
  writer.put(static_cast<uint64_t>(index.block_bytes));
  writer.put(static_cast<uint32_t>(index.entries.size()));
  for (const TierEntry& entry : index.entries) {
    writer.put(static_cast<uint32_t>(entry.block));
    writer.put(entry.hash.low);
    writer.put(entry.hash.high);
    writer.put(entry.parent.low);
    writer.put(entry.parent.high);
    writer.put_bytes(entry.tokens.data(), entry.tokens.size() * sizeof(int32_t));
    writer.put(entry.checksum);
  }
  writer.put(checksum_of(std::as_bytes(std::span(writer.bytes()))));
  return std::move(writer.bytes());
}

std::optional<TierIndex> decode_tier_index(std::span<const std::byte> bytes, std::string& why) {
  const auto refuse = [&why](const char* reason) {
    why = reason;
    return std::nullopt;
  };
  Reader reader(bytes);
  char magic[sizeof(kMagic)] = {};
  uint32_t version = 0;
  if (!reader.get(magic) || std::memcmp(magic, kMagic, sizeof(magic)) != 0) {
    return refuse("it is no index of a KV cache");
  }
  if (!reader.get(version) || version != kVersion) return refuse("its format is another version's");
  uint64_t checksum = 0;
  if (reader.left() < sizeof(checksum)) return refuse("it is cut off");
  const auto content = bytes.first(bytes.size() - sizeof(checksum));
  std::memcpy(&checksum, content.data() + content.size(), sizeof(checksum));
  if (checksum != checksum_of(content)) return refuse("its checksum is wrong");

  TierIndex index;
  uint32_t key_bytes = 0;
  uint32_t block_tokens = 0;
  uint64_t block_bytes = 0;
  uint32_t count = 0;
  if (!reader.get(key_bytes) || key_bytes > kMaxKeyBytes || key_bytes > reader.left()) {
    return refuse("its key is too long");
  }
  index.key.resize(key_bytes);
  if (!reader.get_bytes(index.key.data(), key_bytes) || !reader.get(index.cache_seed) ||
      !reader.get(block_tokens) || !reader.get(block_bytes) || !reader.get(count)) {
    return refuse("it is cut off");
  }
  if (block_tokens == 0 || block_tokens > (1u << 20) || block_bytes > (uint64_t{1} << 40) ||
      reader.left() != count * entry_bytes(block_tokens) + sizeof(checksum)) {
    return refuse("its sizes do not fit");
  }
  index.block_tokens = static_cast<int32_t>(block_tokens);
  index.block_bytes = static_cast<int64_t>(block_bytes);
  if (!read_entries(reader, count, index)) return refuse("its entries do not fit");
  return index;
}

}  // namespace quire::runner
