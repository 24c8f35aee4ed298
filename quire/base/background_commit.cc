#include "quire/base/background_commit.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <utility>

namespace quire {
namespace {

// A huge page: what one call commits, and so how long a stop may have to wait (about 3 ms).
constexpr size_t kChunk = size_t{2} << 20;

/// The whole pages that `range` touches.
std::span<std::byte> whole_pages(std::span<std::byte> range) {
  const auto page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  const auto begin = reinterpret_cast<uintptr_t>(range.data());
  const uintptr_t first = begin / page * page;
  const uintptr_t last = (begin + range.size() + page - 1) / page * page;
  return {range.data() - (begin - first), last - first};
}

}  // namespace

BackgroundCommit::BackgroundCommit(std::vector<std::span<std::byte>> ranges)
    : ranges_(std::move(ranges)), thread_([this] { work(); }) {}

BackgroundCommit::~BackgroundCommit() {
  stopping_.store(true, std::memory_order_relaxed);
  thread_.join();
}

int64_t BackgroundCommit::now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

bool BackgroundCommit::wait_for_quiet() const {
  while (!stopping_.load(std::memory_order_relaxed)) {
    if (now_ns() - last_pause_ns_.load(std::memory_order_relaxed) >= kPauseNs) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return false;
}

void BackgroundCommit::work() {
  size_t longest = 0;
  for (const auto& range : ranges_) longest = std::max(longest, range.size());
  for (size_t offset = 0; offset < longest; offset += kChunk) {
    for (const auto& range : ranges_) {
      if (offset >= range.size()) continue;
      if (!wait_for_quiet()) return;
      const auto chunk = range.subspan(offset, std::min(kChunk, range.size() - offset));
      const auto pages = whole_pages(chunk);
      // Kernels before 5.14 don't know it, and memory may lack: then the first use commits a page.
      if (madvise(pages.data(), pages.size(), MADV_POPULATE_WRITE) != 0) {
        done_.store(true, std::memory_order_release);
        return;
      }
      committed_.fetch_add(static_cast<int64_t>(chunk.size()), std::memory_order_relaxed);
    }
  }
  done_.store(true, std::memory_order_release);
}

}  // namespace quire
