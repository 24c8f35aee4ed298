#include "quire/runner/kept_tier.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <stdexcept>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "quire/base/error.h"
#include "quire/base/log.h"
#include "quire/base/mapped_file.h"

namespace quire::runner {
namespace {

namespace fs = std::filesystem;

/// A file descriptor that is closed with it.
class OpenFile {
 public:
  OpenFile(const std::string& path, int flags) : path_(path) {
    fd_ = open(path.c_str(), flags | O_CLOEXEC, 0600);
    if (fd_ < 0) fail();
  }
  ~OpenFile() { close(fd_); }
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;

  void write_all(const std::string& bytes) {
    for (size_t done = 0; done < bytes.size();) {
      const ssize_t count = write(fd_, bytes.data() + done, bytes.size() - done);
      if (count < 0 && errno != EINTR) fail();
      if (count > 0) done += static_cast<size_t>(count);
    }
  }
  void sync() {
    if (fsync(fd_) != 0) fail();
  }

 private:
  [[noreturn]] void fail() const {
    throw std::runtime_error(fmt::format("{}: {}", path_, std::strerror(errno)));
  }

  std::string path_;
  int fd_ = -1;
};

}  // namespace

void KeptTier::make_folder(const std::string& folder) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) throw LoadError(folder, "", "a folder, or a place for one", error.message());
}

KeptTier::KeptTier(Options options, const SwapSpace& swap)
    : options_(std::move(options)), swap_(swap) {
  std::optional<TierIndex> index = read_index();
  std::error_code error;
  fs::remove(index_file(options_.folder), error);
  if (error) throw LoadError(index_file(options_.folder), "cannot be removed: " + error.message());
  if (!index) return;
  index_.cache_seed = index->cache_seed;
  keep_sound(std::move(index->entries));
}

/// The index, if there is one that fits this process.
std::optional<TierIndex> KeptTier::read_index() const {
  const std::string path = index_file(options_.folder);
  std::error_code error;
  if (!fs::exists(path, error)) return std::nullopt;
  std::string why;
  std::optional<TierIndex> index;
  try {
    index = decode_tier_index(MappedFile(path).bytes(), why);
  } catch (const LoadError& unreadable) {
    why = unreadable.what();
  }
  if (index && (index->key != options_.key || index->block_tokens != options_.block_tokens ||
                index->block_bytes != swap_.block_bytes())) {
    why = "it is of another model, other settings or another version";
    index.reset();
  }
  if (!index) log_warning("{}: {}; it is not used", path, why);
  return index;
}

void KeptTier::keep_sound(std::vector<TierEntry> entries) {
  const size_t num_named = entries.size();
  std::erase_if(entries, [this](const TierEntry& entry) {
    return entry.block >= swap_.num_blocks() ||
           checksum_of(swap_.block(entry.block)) != entry.checksum;
  });
  index_.entries = std::move(entries);
  num_damaged_ = static_cast<int64_t>(num_named - index_.entries.size());
  if (num_damaged_ > 0) {
    log_warning("{}: {} of {} blocks are damaged or lie outside the swap space; they are not used",
                blocks_file(options_.folder), num_damaged_, num_named);
  }
}

std::optional<uint64_t> KeptTier::cache_seed() const {
  if (index_.entries.empty()) return std::nullopt;
  return index_.cache_seed;
}

void KeptTier::add(int32_t block, const kv::BlockHash& hash, const kv::BlockHash& parent,
                   std::span<const int32_t> tokens) {
  index_.entries.push_back({.block = block,
                            .hash = hash,
                            .parent = parent,
                            .tokens = {tokens.begin(), tokens.end()},
                            .checksum = checksum_of(swap_.block(block))});
}

void KeptTier::write(uint64_t cache_seed) {
  index_.key = options_.key;
  index_.cache_seed = cache_seed;
  index_.block_tokens = options_.block_tokens;
  index_.block_bytes = swap_.block_bytes();
  try {
    swap_.sync();
    write_index(encode_tier_index(index_));
    log_info("{} KV blocks are kept in {}", index_.entries.size(), options_.folder);
  } catch (const std::exception& error) {
    log_warning("the KV cache is not kept: {}", error.what());
  }
  index_.entries = {};
}

void KeptTier::write_index(const std::string& bytes) const {
  const std::string path = index_file(options_.folder);
  const std::string unfinished = path + ".new";
  std::error_code error;
  fs::remove(unfinished, error);  // of an earlier process that was killed while it wrote
  {
    OpenFile file(unfinished, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW);
    file.write_all(bytes);
    file.sync();
  }
  fs::rename(unfinished, path);
  OpenFile(options_.folder, O_RDONLY | O_DIRECTORY).sync();
}

}  // namespace quire::runner
