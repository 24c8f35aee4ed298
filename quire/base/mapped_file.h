// MappedFile: a file's bytes, read-only, mapped into memory.
#pragma once

#include <cstddef>
#include <span>
#include <string>

namespace quire {

/// Maps a whole file. Move-only; throws LoadError when it cannot be opened or mapped.
class MappedFile {
 public:
  explicit MappedFile(const std::string& path);
  ~MappedFile();
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  const std::string& path() const { return path_; }
  std::span<const std::byte> bytes() const { return {data_, size_}; }
  /// Tells the system that the pages of `part` (a range inside bytes()) will not be read again
  /// soon.
  void release(std::span<const std::byte> part) const;

 private:
  std::string path_;
  const std::byte* data_ = nullptr;
  size_t size_ = 0;
};

}  // namespace quire
