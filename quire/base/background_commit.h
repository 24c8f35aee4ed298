// BackgroundCommit: touches reserved memory ahead of its use, from a thread that only runs when
// nothing else wants a processor.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <thread>
#include <vector>

namespace quire {

/// A page's first touch costs about 1.5 us a KiB in zeroing it: a step that meets many fresh pages
/// is late by as much. The pages' contents are kept; the order is the one given, so that what is
/// used first is ready first.
class BackgroundCommit {
 public:
  /// Mappings of equal progress: chunk k of all `ranges` comes before chunk k + 1 of any. They must
  /// stay mapped until this is destroyed.
  explicit BackgroundCommit(std::vector<std::span<std::byte>> ranges);
  /// Stops; what is not committed yet stays reserved.
  ~BackgroundCommit();
  BackgroundCommit(const BackgroundCommit&) = delete;
  BackgroundCommit& operator=(const BackgroundCommit&) = delete;

  /// Whether all is committed, or the system refused to go on.
  bool done() const { return done_.load(std::memory_order_acquire); }
  int64_t committed_bytes() const { return committed_.load(std::memory_order_relaxed); }

 private:
  void work();

  std::vector<std::span<std::byte>> ranges_;
  std::atomic<int64_t> committed_{0};
  std::atomic<bool> stopping_{false};
  std::atomic<bool> done_{false};
  std::thread thread_;
};

}  // namespace quire
