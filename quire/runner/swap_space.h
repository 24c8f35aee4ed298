// SwapSpace: the bytes of the blocks that are out of the KV pool: anonymous memory or a mapped
// file, taken as blocks are first written.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "quire/backend/program.h"
#include "quire/base/huge_buffer.h"
#include "quire/base/memory_ledger.h"

namespace quire::runner {

/// Block b is block_bytes() bytes that lie together: group by group, in each layer by layer. A
/// scheduler without swap space has none of it: num_blocks 0 is allowed.
class SwapSpace {
 public:
  struct Options {
    std::vector<backend::CacheGroupSpec> groups = {};
    int64_t num_blocks = 0;  // of each group
    /// A folder for a file that has no name (it is gone with the process); empty: memory.
    std::string folder = {};
    /// Instead of `folder`: a file that is kept, made with mode 0600 if need be and locked against
    /// other processes. Its blocks are what they were.
    std::string file = {};
    MemoryLedger* ledger = nullptr;  // may be null
  };
  /// Throws LoadError where memory or file cannot be mapped, another process has the file, or the
  /// disk has less room than it may take.
  explicit SwapSpace(const Options& options);
  ~SwapSpace();
  SwapSpace(const SwapSpace&) = delete;
  SwapSpace& operator=(const SwapSpace&) = delete;

  int64_t num_blocks() const { return num_blocks_; }
  int64_t block_bytes() const { return block_bytes_; }
  int64_t bytes() const { return num_blocks_ * block_bytes_; }
  std::byte* data() const { return data_; }
  std::span<const std::byte> block(int64_t index) const {
    return {data_ + index * block_bytes_, static_cast<size_t>(block_bytes_)};
  }
  /// Where a group's part begins within each block.
  int64_t group_offset(size_t group) const { return group_offsets_[group]; }

  /// To be called before a block is first written: takes the room on the disk that it needs, since
  /// a write to a mapped file on a full disk is the end of the process. Throws std::runtime_error
  /// when the disk is full. Allocates nothing.
  void reserve(int64_t block);
  /// Writes a kept file's blocks to the disk. Throws std::runtime_error.
  void sync() const;

 private:
  /// Room on the disk is taken by this many bytes at a time.
  static constexpr int64_t kExtentBytes = int64_t{64} << 20;

  void open_file(const Options& options);
  void map_file(const Options& options);

  int64_t num_blocks_ = 0;
  int64_t block_bytes_ = 0;
  std::vector<int64_t> group_offsets_;
  HugeBuffer memory_;
  std::byte* data_ = nullptr;
  int fd_ = -1;
  std::vector<bool> reserved_;  // by extent of the file
  MemoryLedger* ledger_ = nullptr;
};

}  // namespace quire::runner
