#include "quire/base/cpu_count.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <filesystem>
#include <fstream>
#include <thread>

namespace quire {
namespace {

class CpuCount : public testing::Test {
 protected:
  void SetUp() override {
    root_ = testing::TempDir() + "quire_cpu_count_" +
            testing::UnitTest::GetInstance()->current_test_info()->name();
    std::filesystem::remove_all(root_);
    std::filesystem::create_directories(root_);
  }
  void TearDown() override { std::filesystem::remove_all(root_); }

  void write(const std::string& path, const std::string& text) {
    const std::filesystem::path full = root_ + "/" + path;
    std::filesystem::create_directories(full.parent_path());
    std::ofstream(full) << text;
  }

  std::string root_;
};

TEST_F(CpuCount, VersionTwoTakesTheSmallestGrantUpTheTree) {
  write("a/cpu.max", "150000 100000\n");
  write("a/b/cpu.max", "max 100000\n");
  EXPECT_DOUBLE_EQ(cgroup_cpu_quota("0::/a/b\n", root_), 1.5);
  EXPECT_DOUBLE_EQ(cgroup_cpu_quota("0::/\n", root_), 0);
  write("cpu.max", "50000 100000\n");
  EXPECT_DOUBLE_EQ(cgroup_cpu_quota("0::/a/b\n", root_), 0.5);
  EXPECT_DOUBLE_EQ(cgroup_cpu_quota("0::/not/mounted/here\n", root_), 0.5);
}

TEST_F(CpuCount, VersionOneReadsTheCpuController) {
  write("cpu,cpuacct/x/cpu.cfs_quota_us", "300000\n");
  write("cpu,cpuacct/x/cpu.cfs_period_us", "100000\n");
  EXPECT_DOUBLE_EQ(cgroup_cpu_quota("5:cpuset:/x\n4:cpu,cpuacct:/x\n", root_), 3);
  EXPECT_DOUBLE_EQ(cgroup_cpu_quota("5:cpuset:/x\n", root_), 0);
  write("cpu,cpuacct/x/cpu.cfs_quota_us", "-1\n");
  EXPECT_DOUBLE_EQ(cgroup_cpu_quota("4:cpu,cpuacct:/x\n", root_), 0);
}

TEST_F(CpuCount, NonsenseMeansUnlimited) {
  write("cpu.max", "what is this\n");
  EXPECT_DOUBLE_EQ(cgroup_cpu_quota("0::/\n", root_), 0);
  EXPECT_DOUBLE_EQ(cgroup_cpu_quota("", root_), 0);
  EXPECT_DOUBLE_EQ(cgroup_cpu_quota("no colons", root_), 0);
}

TEST_F(CpuCount, HardwareThreadsOfOneCoreCountOnce) {
  for (int cpu = 0; cpu < 8; ++cpu) {
    const std::string folder = "cpu" + std::to_string(cpu) + "/topology/";
    write(folder + "physical_package_id", std::to_string(cpu / 4) + "\n");
    write(folder + "core_id", std::to_string(cpu % 2) + "\n");
  }
  EXPECT_EQ(physical_cores({0, 1, 2, 3, 4, 5, 6, 7}, root_), 4);
  EXPECT_EQ(physical_cores({0, 2}, root_), 1);
  EXPECT_EQ(physical_cores({0, 1, 12, 13}, root_), 4);  // 12 and 13 have no topology
}

TEST_F(CpuCount, ReadsListsOfProcessors) {
  EXPECT_EQ(parse_cpu_list("3"), (std::vector<int>{3}));
  EXPECT_EQ(parse_cpu_list("0-3,6"), (std::vector<int>{0, 1, 2, 3, 6}));
  EXPECT_EQ(parse_cpu_list("8,2-2"), (std::vector<int>{8, 2}));
  for (const char* wrong :
       {"", ",", "1,", "a", "1-", "3-1", "-1", "1 2", "0-2,1", "1,1", "99999999", "0-99999999"}) {
    EXPECT_FALSE(parse_cpu_list(wrong)) << wrong;
  }
}

TEST_F(CpuCount, AffinityLimitsTheDefault) {
  const std::vector<int> all = allowed_cpus();
  ASSERT_FALSE(all.empty());
  EXPECT_LE(default_thread_count(), static_cast<int>(all.size()));
  std::thread([&] {  // the mask belongs to the thread
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(static_cast<size_t>(all.front()), &one);
    ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
    EXPECT_EQ(allowed_cpus(), std::vector<int>{all.front()});
    EXPECT_EQ(default_thread_count(), 1);
  })
      .join();
}

}  // namespace
}  // namespace quire
