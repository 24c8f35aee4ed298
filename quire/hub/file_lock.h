// FileLock: an exclusive lock between processes, held on a file and released by the system when the
// holder dies.
#pragma once

#include <optional>
#include <string>

namespace quire::hub {

class FileLock {
 public:
  /// Makes the file if need be and takes the lock; nothing when another process holds it. Throws
  /// LoadError when the file cannot be opened.
  static std::optional<FileLock> try_acquire(const std::string& path);

  FileLock(FileLock&& other) noexcept;
  FileLock& operator=(FileLock&& other) noexcept;
  FileLock(const FileLock&) = delete;
  FileLock& operator=(const FileLock&) = delete;
  ~FileLock();

 private:
  explicit FileLock(int fd) : fd_(fd) {}
  int fd_ = -1;
};

}  // namespace quire::hub
