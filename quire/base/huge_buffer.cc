#include "quire/base/huge_buffer.h"

#include <sys/mman.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include <fmt/format.h>

#include "quire/base/error.h"

namespace quire {
namespace {

constexpr int64_t kHugePage = int64_t{2} << 20;

int64_t round_up(int64_t value, int64_t unit) {
  return (value + unit - 1) / unit * unit;
}

}  // namespace

HugeBuffer::HugeBuffer(int64_t bytes, MemoryTag tag, MemoryLedger* ledger)
    : size_(bytes), tag_(tag), ledger_(ledger) {
  if (bytes <= 0) return;
  const bool huge = bytes > kHugePage / 2;
  const int64_t unit = huge ? kHugePage : 4096;
  mapped_ = round_up(bytes, unit);
  // The system aligns to small pages only: map more, then give back what lies around.
  const int64_t wanted = mapped_ + (huge ? kHugePage : 0);
  void* found = mmap(nullptr, static_cast<size_t>(wanted), PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (found == MAP_FAILED) {
    throw LoadError("memory", fmt::format("cannot map {} bytes for {}: {}", bytes,
                                          memory_tag_name(tag), std::strerror(errno)));
  }
  const auto address = static_cast<int64_t>(reinterpret_cast<uintptr_t>(found));
  const int64_t before = round_up(address, unit) - address;
  data_ = static_cast<std::byte*>(found) + before;
  if (before > 0) munmap(found, static_cast<size_t>(before));
  const int64_t behind = wanted - before - mapped_;
  if (behind > 0) munmap(data_ + mapped_, static_cast<size_t>(behind));
  if (huge) madvise(data_, static_cast<size_t>(mapped_), MADV_HUGEPAGE);
  if (ledger_ != nullptr) ledger_->add(tag_, size_);
}

HugeBuffer::~HugeBuffer() {
  release();
}

HugeBuffer::HugeBuffer(HugeBuffer&& other) noexcept {
  *this = std::move(other);
}

HugeBuffer& HugeBuffer::operator=(HugeBuffer&& other) noexcept {
  if (this == &other) return *this;
  release();
  data_ = std::exchange(other.data_, nullptr);
  size_ = std::exchange(other.size_, 0);
  mapped_ = std::exchange(other.mapped_, 0);
  tag_ = other.tag_;
  ledger_ = other.ledger_;
  return *this;
}

void HugeBuffer::release() {
  if (data_ == nullptr) return;
  munmap(data_, static_cast<size_t>(mapped_));
  if (ledger_ != nullptr) ledger_->remove(tag_, size_);
  data_ = nullptr;
}

}  // namespace quire
