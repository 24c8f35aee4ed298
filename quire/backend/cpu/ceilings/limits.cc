#include "quire/backend/cpu/ceilings/limits.h"

#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <utility>

#include <fmt/format.h>

#include "quire/base/error.h"
#include "quire/base/huge_buffer.h"
#include "quire/base/thread_pool.h"
#include "quire/base/turn_counter.h"

namespace quire::backend::cpu {
namespace {

ThreadPool::Options threads_of(int count) {
  ThreadPool::Options options;
  options.num_threads = count;
  return options;
}

RunWorkers workers_of(ThreadPool& pool) {
  return [&pool](const std::function<void(int, int)>& fn) { pool.run(fn); };
}

/// Memory in pages of 4 KiB, whatever the system does elsewhere.
class SmallPages {
 public:
  explicit SmallPages(int64_t bytes) : bytes_(static_cast<size_t>(bytes)) {
    if (bytes == 0) return;
    data_ = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (data_ == MAP_FAILED) {
      data_ = nullptr;
      throw LoadError("memory", fmt::format("cannot map {} bytes to read from", bytes));
    }
    madvise(data_, bytes_, MADV_NOHUGEPAGE);
  }
  ~SmallPages() {
    if (data_ != nullptr) munmap(data_, bytes_);
  }
  SmallPages(const SmallPages&) = delete;
  SmallPages& operator=(const SmallPages&) = delete;

  std::byte* data() const { return static_cast<std::byte*>(data_); }

 private:
  size_t bytes_;
  void* data_ = nullptr;
};

/// Measurements that are taken in turns: add() them all, then run().
class Rounds {
 public:
  void add(Figure* figure, bool is_time, std::function<double()> measure) {
    entries_.push_back({figure, is_time, std::move(measure), {}});
  }

  void run(int repetitions, const std::function<void(int, int)>& on_progress) {
    const int total = repetitions * static_cast<int>(entries_.size());
    int done = 0;
    for (int round = 0; round < repetitions; ++round) {
      for (Entry& entry : entries_) {
        if (on_progress) on_progress(done++, total);
        entry.values.push_back(entry.measure());
      }
    }
    if (on_progress) on_progress(total, total);
    for (Entry& entry : entries_) {
      *entry.figure = entry.is_time ? time_figure(entry.values) : rate_figure(entry.values);
    }
  }

 private:
  struct Entry {
    Figure* figure;
    bool is_time;
    std::function<double()> measure;
    std::vector<double> values;
  };
  std::vector<Entry> entries_;
};

/// All workers meet again and again, as between the phases of a step: the last to arrive begins the
/// next turn.
struct Meetings {
  int num_workers;
  uint64_t turns;
  std::atomic<int> arrived{0};
  TurnCounter turn{0};

  void operator()(int) {
    for (uint64_t now = 0; now < turns; ++now) {
      if (arrived.fetch_add(1, std::memory_order_acq_rel) + 1 == num_workers) {
        arrived.store(0, std::memory_order_relaxed);
        turn.set(now + 1);
      } else {
        turn.wait(now, std::chrono::microseconds(1500));
      }
    }
  }
};

/// Microseconds of a region that every worker comes to and nothing is done in.
double fork_join_us(ThreadPool& pool) {
  constexpr int kRegions = 1000;
  return seconds_of([&] {
           for (int i = 0; i < kRegions; ++i) {
             Meetings once{.num_workers = pool.num_workers(), .turns = 1};
             pool.lead(once);
             pool.settle();
           }
         }) *
         1e6 / kRegions;
}

/// And of a barrier inside one.
double barrier_us(ThreadPool& pool) {
  Meetings meetings{.num_workers = pool.num_workers(), .turns = 2000};
  const double seconds = seconds_of([&] { pool.lead(meetings); });
  pool.settle();
  return seconds * 1e6 / static_cast<double>(meetings.turns);
}

/// Builds the table's rows, then measures them.
class Measurement {
 public:
  explicit Measurement(const LimitsOptions& options)
      : options_(options),
        one_(threads_of(1)),
        all_(threads_of(options.threads)),
        levels_(options.levels.empty() ? available_levels() : options.levels),
        reads_(probe_table(levels_.back())),
        read_bytes_(bytes_to_read()),
        huge_(total_bytes(true), MemoryTag::kOther, nullptr),
        small_(total_bytes(false)) {
    table_.cpu = processor_name();
    table_.threads = all_.num_workers();
    for (const Level level : levels_) probes_.push_back(probe_table(level));
  }

  LimitsTable run() {
    for (const bool huge : options_.huge_pages) touch(memory(huge));
    list_rows();
    add_all();
    rounds_.run(options_.repetitions, options_.on_progress);
    return std::move(table_);
  }

 private:
  bool wanted(bool huge) const {
    return std::find(options_.huge_pages.begin(), options_.huge_pages.end(), huge) !=
           options_.huge_pages.end();
  }
  int64_t bytes_to_read() const {
    constexpr int64_t kAll = int64_t{512} << 20;
    constexpr int64_t kLeast = int64_t{64} << 20;
    const int64_t bytes =
        options_.read_bytes > 0 ? options_.read_bytes : std::max(kLeast, kAll / all_.num_workers());
    return std::max(round_down(bytes, kReadUnit), kReadUnit);
  }
  int64_t total_bytes(bool huge) const {
    return wanted(huge) ? read_bytes_ * all_.num_workers() : 0;
  }
  std::byte* memory(bool huge) const { return huge ? huge_.data() : small_.data(); }

  /// By the thread that will read it, so that it lies near that thread.
  void touch(std::byte* data) {
    all_.run([&](int worker, int) {
      std::memset(data + worker * read_bytes_, 1, static_cast<size_t>(read_bytes_));
    });
  }

  std::vector<ThreadPool*> pools() {
    return all_.num_workers() == 1 ? std::vector{&one_} : std::vector{&one_, &all_};
  }
  ThreadPool& pool_of(int threads) { return threads == 1 ? one_ : all_; }

  /// What one thread goes over to read from a cache; 0 where the size is not known.
  int64_t working_set(int level) const {
    const int64_t size = cache_bytes(level);
    if (size == 0) return 0;
    if (level < 3) return round_down(size / 2, kReadUnit);
    const int64_t beyond_l2 = 2 * cache_bytes(2);
    const int64_t share = round_down(size / 2 / all_.num_workers(), kReadUnit);
    return share >= beyond_l2 ? std::min(share, read_bytes_) : 0;
  }

  void list_rows() {
    for (ThreadPool* pool : pools()) {
      const int threads = pool->num_workers();
      for (const bool huge : options_.huge_pages) {
        for (const int streams : kReadStreams) table_.reads.push_back({threads, streams, huge, {}});
      }
      for (int level = 1; level <= 3; ++level) {
        const int64_t bytes = working_set(level);
        if (bytes > 0 && bytes <= read_bytes_ && wanted(true)) {
          table_.caches.push_back({level, threads, bytes, {}});
        }
      }
      for (size_t i = 0; i < levels_.size(); ++i) list_peaks(levels_[i], probes_[i], threads);
    }
    table_.sync.threads = all_.num_workers();
  }

  void list_peaks(Level level, const ProbeTable& probes, int threads) {
    for (const auto arithmetic : {Arithmetic::kF32, Arithmetic::kBF16, Arithmetic::kI8}) {
      const PeakProbe& probe = probe_of(probes, arithmetic);
      if (probe.run == nullptr) continue;
      table_.peaks.push_back({level, arithmetic, probe.instruction, threads, {}});
    }
  }

  static const PeakProbe& probe_of(const ProbeTable& probes, Arithmetic arithmetic) {
    if (arithmetic == Arithmetic::kF32) return probes.fp32;
    return arithmetic == Arithmetic::kBF16 ? probes.bf16 : probes.int8;
  }

  /// The rows do not move any more.
  void add_all() {
    constexpr int64_t kCacheBytes = int64_t{64} << 20;  // read from a cache in a repetition
    for (ReadLimit& row : table_.reads) {
      const auto index = std::find(std::begin(kReadStreams), std::end(kReadStreams), row.streams) -
                         std::begin(kReadStreams);
      rounds_.add(&row.gbs, false, [this, &row, index] {
        return read_rate(workers_of(pool_of(row.threads)), reads_.read[index],
                         memory(row.huge_pages), read_bytes_ * row.threads);
      });
    }
    for (CacheLimit& row : table_.caches) {
      rounds_.add(&row.gbs, false, [this, &row] {
        return read_rate(workers_of(pool_of(row.threads)), reads_.read[2], memory(true),
                         row.bytes * row.threads, std::max<int64_t>(2, kCacheBytes / row.bytes));
      });
    }
    for (PeakLimit& row : table_.peaks) {
      const auto index = std::find(levels_.begin(), levels_.end(), row.level) - levels_.begin();
      const PeakProbe& probe = probe_of(probes_[static_cast<size_t>(index)], row.arithmetic);
      rounds_.add(&row.gops, false, [this, &row, &probe] {
        return peak_rate(workers_of(pool_of(row.threads)), probe);
      });
    }
    rounds_.add(&table_.sync.fork_join_us, true, [this] { return fork_join_us(all_); });
    rounds_.add(&table_.sync.barrier_us, true, [this] { return barrier_us(all_); });
  }

  const LimitsOptions options_;
  ThreadPool one_;
  ThreadPool all_;
  const std::vector<Level> levels_;
  const ProbeTable reads_;
  std::vector<ProbeTable> probes_;  // by levels_
  const int64_t read_bytes_;        // of one thread
  HugeBuffer huge_;
  SmallPages small_;
  LimitsTable table_;
  Rounds rounds_;
};

}  // namespace

const char* arithmetic_name(Arithmetic arithmetic) {
  switch (arithmetic) {
    case Arithmetic::kF32:
      return "fp32";
    case Arithmetic::kBF16:
      return "bf16";
    case Arithmetic::kI8:
      return "int8";
  }
  return "?";
}

LimitsTable measure_limits(const LimitsOptions& options) {
  return Measurement(options).run();
}

Ceilings summarize(const LimitsTable& table, Level level) {
  Ceilings ceilings;
  ceilings.cpu = table.cpu;
  ceilings.level = level_name(level);
  ceilings.threads = table.threads;
  for (const ReadLimit& row : table.reads) {
    if (!row.huge_pages) continue;
    double& best = row.threads == table.threads ? ceilings.read_gbs : ceilings.read_gbs_one_thread;
    best = std::max(best, row.gbs.median);
    if (table.threads == 1) ceilings.read_gbs_one_thread = best;
  }
  for (const CacheLimit& row : table.caches) {
    if (row.threads != table.threads) continue;
    (row.level == 1   ? ceilings.l1_read_gbs
     : row.level == 2 ? ceilings.l2_read_gbs
                      : ceilings.l3_read_gbs) = row.gbs.median;
  }
  for (const PeakLimit& row : table.peaks) {
    if (row.level != level) continue;
    const auto set = [&](double& all, double& one) {
      if (row.threads == table.threads) all = row.gops.median;
      if (row.threads == 1) one = row.gops.median;
    };
    if (row.arithmetic == Arithmetic::kF32) {
      set(ceilings.fp32_gflops, ceilings.fp32_gflops_one_thread);
    } else if (row.arithmetic == Arithmetic::kBF16) {
      set(ceilings.bf16_gflops, ceilings.bf16_gflops_one_thread);
    } else {
      set(ceilings.int8_gops, ceilings.int8_gops_one_thread);
    }
  }
  ceilings.fork_join_us = table.sync.fork_join_us.best;
  ceilings.barrier_us = table.sync.barrier_us.best;
  return ceilings;
}

}  // namespace quire::backend::cpu
