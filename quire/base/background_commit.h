// BackgroundCommit: touches reserved memory ahead of its use, from a thread that pauses while there
// is work.
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
///
/// The thread has an ordinary priority and pauses between pages instead of running at a low one:
/// it holds the process's address space while it commits, and a low one would let whoever
/// allocates memory wait for it as long as the processors are busy.
class BackgroundCommit {
 public:
  /// Mappings of equal progress: chunk k of all `ranges` comes before chunk k + 1 of any. They must
  /// stay mapped until this is destroyed.
  explicit BackgroundCommit(std::vector<std::span<std::byte>> ranges);
  /// Stops; what is not committed yet stays reserved.
  ~BackgroundCommit();
  BackgroundCommit(const BackgroundCommit&) = delete;
  BackgroundCommit& operator=(const BackgroundCommit&) = delete;

  /// There is work: commits nothing for kPauseNs from now on. From any thread, at any rate.
  void pause() { last_pause_ns_.store(now_ns(), std::memory_order_relaxed); }
  static constexpr int64_t kPauseNs = 50'000'000;

  /// Whether all is committed, or the system refused to go on.
  bool done() const { return done_.load(std::memory_order_acquire); }
  int64_t committed_bytes() const { return committed_.load(std::memory_order_relaxed); }

 private:
  static int64_t now_ns();
  void work();
  /// Returns when nobody has paused it lately; false: stop.
  bool wait_for_quiet() const;

  std::vector<std::span<std::byte>> ranges_;
  std::atomic<int64_t> committed_{0};
  std::atomic<int64_t> last_pause_ns_{-kPauseNs};
  std::atomic<bool> stopping_{false};
  std::atomic<bool> done_{false};
  std::thread thread_;
};

}  // namespace quire
