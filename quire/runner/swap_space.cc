#include "quire/runner/swap_space.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <stdexcept>

#include <fmt/format.h>

#include "quire/base/check.h"
#include "quire/base/error.h"

namespace quire::runner {
namespace {

/// A new file in `folder` that nobody can open by name any more, or -1 with errno.
int open_unnamed(const std::string& folder) {
  std::string path = folder + "/quire-swap-XXXXXX";
  const int fd = mkostemp(path.data(), O_CLOEXEC);
  if (fd >= 0) unlink(path.c_str());
  return fd;
}

/// What the disk of an open file could still give it, beside what it has.
int64_t room_for(int fd) {
  struct statvfs disk {};
  struct stat file {};
  if (fstatvfs(fd, &disk) != 0 || fstat(fd, &file) != 0) return 0;
  return static_cast<int64_t>(disk.f_bavail) * static_cast<int64_t>(disk.f_frsize) +
         static_cast<int64_t>(file.st_blocks) * 512;
}

}  // namespace

SwapSpace::SwapSpace(const Options& options)
    : num_blocks_(options.num_blocks), ledger_(options.ledger) {
  for (const backend::CacheGroupSpec& group : options.groups) {
    group_offsets_.push_back(block_bytes_);
    block_bytes_ += group.block_bytes();
  }
  if (bytes() == 0) return;
  if (options.folder.empty() && options.file.empty()) {
    memory_ = HugeBuffer(bytes(), MemoryTag::kSwapSpace, ledger_);
    data_ = memory_.data();
    return;
  }
  open_file(options);
  try {
    map_file(options);
  } catch (...) {
    close(fd_);
    throw;
  }
  if (ledger_ != nullptr) ledger_->add(MemoryTag::kSwapSpace, bytes());
}

SwapSpace::~SwapSpace() {
  if (fd_ < 0) return;
  munmap(data_, static_cast<size_t>(bytes()));
  close(fd_);
  if (ledger_ != nullptr) ledger_->remove(MemoryTag::kSwapSpace, bytes());
}

void SwapSpace::open_file(const Options& options) {
  const bool kept = !options.file.empty();
  fd_ = kept ? open(options.file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600)
             : open_unnamed(options.folder);
  if (fd_ >= 0) return;
  const std::string why = std::strerror(errno);
  throw LoadError(kept ? options.file : options.folder, "swap space",
                  kept ? "a file that can be written" : "a folder in which files can be made", why);
}

void SwapSpace::map_file(const Options& options) {
  const std::string& where = options.file.empty() ? options.folder : options.file;
  constexpr double kGiB = 1 << 30;
  if (!options.file.empty() && flock(fd_, LOCK_EX | LOCK_NB) != 0) {
    throw LoadError(where, "swap space", "a folder that no other process uses",
                    errno == EWOULDBLOCK ? "it is in use" : std::strerror(errno));
  }
  const int64_t room = room_for(fd_);
  if (room < bytes()) {
    throw LoadError(where, "swap space",
                    fmt::format("{:.2f} GiB free on its disk, or a smaller --swap-space",
                                static_cast<double>(bytes()) / kGiB),
                    fmt::format("{:.2f} GiB", static_cast<double>(room) / kGiB));
  }
  if (ftruncate(fd_, bytes()) != 0) throw LoadError(where, std::strerror(errno));
  void* mapping =
      mmap(nullptr, static_cast<size_t>(bytes()), PROT_READ | PROT_WRITE, MAP_SHARED, fd_, 0);
  if (mapping == MAP_FAILED) throw LoadError(where, std::strerror(errno));
  data_ = static_cast<std::byte*>(mapping);
  reserved_.assign(static_cast<size_t>((bytes() + kExtentBytes - 1) / kExtentBytes), false);
}

void SwapSpace::reserve(int64_t block) {
  QUIRE_CHECK(block >= 0 && block < num_blocks_);
  if (fd_ < 0) return;
  const int64_t first = block * block_bytes_ / kExtentBytes;
  const int64_t last = ((block + 1) * block_bytes_ - 1) / kExtentBytes;
  for (int64_t extent = first; extent <= last; ++extent) {
    if (reserved_[static_cast<size_t>(extent)]) continue;
    const int64_t begin = extent * kExtentBytes;
    int failed = 0;
    do {
      failed = fallocate(fd_, 0, begin, std::min(kExtentBytes, bytes() - begin));
    } while (failed != 0 && errno == EINTR);
    // Where a file system cannot do this, its size was checked at the start, and that is all.
    if (failed != 0 && (errno == ENOSPC || errno == EDQUOT)) {
      throw std::runtime_error("the disk of the swap file is full");
    }
    reserved_[static_cast<size_t>(extent)] = true;
  }
}

void SwapSpace::sync() const {
  if (fd_ < 0) return;
  if (msync(data_, static_cast<size_t>(bytes()), MS_SYNC) != 0 || fsync(fd_) != 0) {
    throw std::runtime_error(fmt::format("the swap file cannot be written: {}", strerror(errno)));
  }
}

}  // namespace quire::runner
