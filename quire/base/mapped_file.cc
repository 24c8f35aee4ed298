#include "quire/base/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <utility>

#include "quire/base/error.h"

namespace quire {

MappedFile::MappedFile(const std::string& path) : path_(path) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) throw LoadError(path, std::strerror(errno));
  struct stat info {};
  if (fstat(fd, &info) != 0 || !S_ISREG(info.st_mode)) {
    close(fd);
    throw LoadError(path, "", "a regular file", "something else");
  }
  size_ = static_cast<size_t>(info.st_size);
  if (size_ != 0) {
    void* mapping = mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, fd, 0);
    if (mapping == MAP_FAILED) {
      const int reason = errno;
      close(fd);
      throw LoadError(path, std::strerror(reason));
    }
    data_ = static_cast<const std::byte*>(mapping);
  }
  close(fd);
}

MappedFile::~MappedFile() {
  if (data_ != nullptr) munmap(const_cast<std::byte*>(data_), size_);
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : path_(std::move(other.path_)),
      data_(std::exchange(other.data_, nullptr)),
      size_(std::exchange(other.size_, 0)) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  if (this != &other) {
    if (data_ != nullptr) munmap(const_cast<std::byte*>(data_), size_);
    path_ = std::move(other.path_);
    data_ = std::exchange(other.data_, nullptr);
    size_ = std::exchange(other.size_, 0);
  }
  return *this;
}

void MappedFile::release(std::span<const std::byte> part) const {
  constexpr size_t kPage = 4096;
  // The mapping itself begins on a page.
  const auto offset = static_cast<size_t>(part.data() - data_);
  const size_t begin = (offset + kPage - 1) / kPage * kPage;
  const size_t end = (offset + part.size()) / kPage * kPage;
  if (begin >= end) return;
  madvise(const_cast<std::byte*>(data_) + begin, end - begin, MADV_DONTNEED);
}

}  // namespace quire
