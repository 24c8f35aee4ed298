#include "quire/plan/this_device.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "quire/base/cpu_count.h"
#include "quire/checkpoint/testing/temp_folder.h"

namespace quire::plan {
namespace {

void write(const std::filesystem::path& path, const std::string& text) {
  std::filesystem::create_directories(path.parent_path());
  std::ofstream(path) << text << "\n";
}

TEST(ThisDevice, CachesAreCountedOnceHoweverManyShareThem) {
  const checkpoint::testing::TempFolder folder;
  const std::filesystem::path root(folder.path());
  const auto cpus = allowed_cpus();
  for (const int cpu : cpus) {
    const auto cache = root / ("cpu" + std::to_string(cpu)) / "cache";
    write(cache / "index0" / "level", "1");
    write(cache / "index0" / "type", "Data");
    write(cache / "index0" / "shared_cpu_list", std::to_string(cpu));
    write(cache / "index0" / "size", "32K");
    write(cache / "index1" / "level", "1");
    write(cache / "index1" / "type", "Instruction");
    write(cache / "index1" / "size", "64K");
    write(cache / "index3" / "level", "3");
    write(cache / "index3" / "type", "Unified");
    write(cache / "index3" / "shared_cpu_list", "all");
    write(cache / "index3" / "size", "16M");
  }
  const auto threads = static_cast<int>(cpus.size());
  EXPECT_EQ(cache_bytes(1, threads, folder.path()), 32768 * threads);
  EXPECT_EQ(cache_bytes(1, 1, folder.path()), 32768) << "a core's own, for as many as work";
  EXPECT_EQ(cache_bytes(2, threads, folder.path()), 0);
  EXPECT_EQ(cache_bytes(3, 1, folder.path()), 16 << 20);
}

TEST(ThisDevice, CeilingsAreTakenOver) {
  backend::cpu::Ceilings ceilings;
  ceilings.cpu = "a processor";
  ceilings.level = "avx2";
  ceilings.threads = 2;
  ceilings.read_gbs = 20;
  ceilings.l2_read_gbs = 200;
  ceilings.fp32_gflops = 100;
  ceilings.int8_gops = 300;
  ceilings.barrier_us = 2;
  const Device device = device_of(ceilings, 2);
  EXPECT_TRUE(device.measured);
  EXPECT_DOUBLE_EQ(device.memory_bandwidth(), 20e9);
  EXPECT_DOUBLE_EQ(device.peak_int8, 300e9);
  EXPECT_DOUBLE_EQ(device.peak_bf16, 100e9) << "no bf16 instruction: fp32 arithmetic";
  EXPECT_DOUBLE_EQ(device.ridge(backend::ActType::kI8), 15);
  EXPECT_DOUBLE_EQ(device.operation_seconds, 2e-6 + 2.5e-6);
  EXPECT_EQ(device.levels.back().name, "memory");
}

}  // namespace
}  // namespace quire::plan
