#include "quire/backend/cpu/ceilings.h"

#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <set>

#include <gtest/gtest.h>

#include "quire/backend/cpu/ceilings/limits.h"
#include "quire/base/error.h"
#include "quire/base/huge_buffer.h"
#include "quire/base/thread_pool.h"

namespace quire::backend::cpu {
namespace {

namespace fs = std::filesystem;

/// A folder below the system's temporary one, gone with the object.
class Folder {
 public:
  Folder() {
    std::string name = (fs::temp_directory_path() / "quire-ceilings-XXXXXX").string();
    path_ = mkdtemp(name.data());
  }
  ~Folder() { fs::remove_all(path_); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

TEST(Probes, ReadEveryByteOnceInAnyNumberOfStreams) {
  constexpr int64_t kBytes = 4 * kReadUnit;
  const HugeBuffer memory(kBytes, MemoryTag::kOther, nullptr);
  for (const Level level : available_levels()) {
    const ProbeTable table = probe_table(level);
    for (const ReadProbe probe : table.read) {
      std::memset(memory.data(), 0, kBytes);
      EXPECT_EQ(probe(memory.data(), kBytes), 0u);
      for (int64_t at = 0; at < kBytes; ++at) {
        memory.data()[at] = std::byte{0x10};
        EXPECT_NE(probe(memory.data(), kBytes), 0u) << level_name(level) << " byte " << at;
        memory.data()[at] = std::byte{0};
      }
    }
  }
}

TEST(Probes, ReadNothingBeyondTheEnd) {
  constexpr int64_t kBytes = 2 * kReadUnit;
  const HugeBuffer memory(2 * kBytes, MemoryTag::kOther, nullptr);
  std::memset(memory.data(), 0, kBytes);
  std::memset(memory.data() + kBytes, 0xff, kBytes);
  for (const Level level : available_levels()) {
    for (const ReadProbe probe : probe_table(level).read) {
      EXPECT_EQ(probe(memory.data(), kBytes), 0u) << level_name(level);
    }
  }
}

TEST(Figures, RatesAreBestWhenHighTimesWhenLow) {
  EXPECT_EQ(rate_figure({3, 1, 2}).median, 2);
  EXPECT_EQ(rate_figure({3, 1, 2}).best, 3);
  EXPECT_EQ(time_figure({4, 1, 2, 3}).median, 2.5);
  EXPECT_EQ(time_figure({4, 1, 2, 3}).best, 1);
  EXPECT_EQ(rate_figure({}).best, 0);
}

TEST(MeasureLimits, FillsEveryRowForOneThreadAndAll) {
  LimitsOptions options;
  options.threads = 2;
  options.read_bytes = 1 << 20;
  options.repetitions = 2;
  int last = -1;
  options.on_progress = [&](int done, int total) {
    EXPECT_LE(done, total);
    EXPECT_GT(done, last);
    last = done;
  };
  const LimitsTable table = measure_limits(options);
  EXPECT_EQ(table.threads, 2);
  EXPECT_EQ(table.reads.size(), 2u * 2 * kNumReadProbes);  // threads, page kinds
  for (const ReadLimit& row : table.reads) {
    EXPECT_GT(row.gbs.median, 0);
    EXPECT_GE(row.gbs.best, row.gbs.median);
  }
  std::set<Level> levels;
  for (const PeakLimit& row : table.peaks) {
    levels.insert(row.level);
    EXPECT_GT(row.gops.median, 0) << row.instruction;
  }
  EXPECT_EQ(levels.size(), available_levels().size());
  EXPECT_GT(table.sync.fork_join_us.median, 0);
  EXPECT_GT(table.sync.barrier_us.median, 0);

  const Ceilings best = summarize(table, available_levels().back());
  EXPECT_EQ(best.threads, 2);
  EXPECT_GT(best.fp32_gflops, 0);
  EXPECT_GT(best.int8_gops_one_thread, 0);
  double fastest = 0;
  for (const ReadLimit& row : table.reads) {
    if (row.huge_pages && row.threads == 2) fastest = std::max(fastest, row.gbs.median);
  }
  EXPECT_EQ(best.read_gbs, fastest);
  EXPECT_EQ(summarize(table, Level::kScalar).bf16_gflops, 0);  // no such instruction
}

TEST(MeasureLimits, OneThreadIsAlsoAll) {
  LimitsOptions options;
  options.threads = 1;
  options.levels = {Level::kScalar};
  options.huge_pages = {true};
  options.read_bytes = 1 << 20;
  options.repetitions = 1;
  const Ceilings ceilings = summarize(measure_limits(options), Level::kScalar);
  EXPECT_GT(ceilings.read_gbs, 0);
  EXPECT_EQ(ceilings.read_gbs, ceilings.read_gbs_one_thread);
  EXPECT_EQ(ceilings.fp32_gflops, ceilings.fp32_gflops_one_thread);
}

TEST(CacheBytes, DataOrUnifiedWithinWhatProcessorsHave) {
  const Folder root;
  const auto write = [&](int index, int level, const char* type, const char* size) {
    const fs::path folder = root.path() / "cpu0/cache" / ("index" + std::to_string(index));
    fs::create_directories(folder);
    std::ofstream(folder / "level") << level << "\n";
    std::ofstream(folder / "type") << type << "\n";
    std::ofstream(folder / "size") << size << "\n";
  };
  write(0, 1, "Instruction", "64K");
  write(1, 1, "Data", "48K");
  write(2, 2, "Unified", "1024K");
  write(3, 3, "Unified", "520192K");  // a virtual machine's
  const std::string path = root.path().string();
  EXPECT_EQ(cache_bytes(1, path), 48 << 10);
  EXPECT_EQ(cache_bytes(2, path), 1 << 20);
  EXPECT_EQ(cache_bytes(3, path), 0);
  EXPECT_EQ(cache_bytes(1, path + "/nowhere"), 0);
}

TEST(CeilingsCache, ComesBackForTheSameProcessorThreadsAndLevel) {
  const Folder folder;
  Ceilings ceilings;
  ceilings.cpu = processor_name();
  ceilings.level = "avx2";
  ceilings.threads = 3;
  ceilings.read_gbs = 41.5;
  ceilings.int8_gops = 935.25;
  ceilings.barrier_us = 0.5;
  ASSERT_TRUE(save_ceilings(ceilings, folder.path() / "deep"));
  const auto known = load_ceilings(3, Level::kAvx2, folder.path() / "deep");
  ASSERT_TRUE(known);
  EXPECT_EQ(known->cpu, ceilings.cpu);
  EXPECT_EQ(known->level, "avx2");
  EXPECT_EQ(known->read_gbs, 41.5);
  EXPECT_EQ(known->int8_gops, 935.25);
  EXPECT_EQ(known->barrier_us, 0.5);
  EXPECT_EQ(known->fp32_gflops, 0);
  EXPECT_FALSE(load_ceilings(4, Level::kAvx2, folder.path() / "deep"));
  EXPECT_FALSE(load_ceilings(3, Level::kAvx512, folder.path() / "deep"));
}

TEST(CeilingsCache, AFileThatIsNoneIsAsGoodAsMissing) {
  const Folder folder;
  Ceilings ceilings;
  ceilings.cpu = processor_name();
  ceilings.level = "scalar";
  ceilings.threads = 1;
  ASSERT_TRUE(save_ceilings(ceilings, folder.path()));
  const fs::path file = fs::directory_iterator(folder.path())->path();
  for (const char* content : {"", "{", "[]", "{\"cpu\": 3}", "{\"read_gbs\": \"fast\"}"}) {
    std::ofstream(file) << content;
    EXPECT_FALSE(load_ceilings(1, Level::kScalar, folder.path())) << content;
  }
  EXPECT_FALSE(save_ceilings(ceilings, {}));
  EXPECT_FALSE(save_ceilings(ceilings, "/proc/nowhere"));
}

}  // namespace
}  // namespace quire::backend::cpu
