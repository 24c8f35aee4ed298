#include "quire/llm/available_memory.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

namespace quire::llm {
namespace {

namespace fs = std::filesystem;
constexpr int64_t kMiB = int64_t{1} << 20;

class AvailableMemory : public testing::Test {
 protected:
  void SetUp() override {
    root_ =
        fs::path(testing::TempDir()) /
        ("memory_" + std::string(testing::UnitTest::GetInstance()->current_test_info()->name()));
    fs::remove_all(root_);
    write("proc/meminfo", "MemTotal:  9000 kB\nMemAvailable:   204800 kB\nCached: 1 kB\n");
  }
  void TearDown() override { fs::remove_all(root_); }

  void write(const std::string& path, const std::string& text) {
    fs::create_directories((root_ / path).parent_path());
    std::ofstream(root_ / path) << text;
  }
  int64_t available() const { return available_memory(root_.string()); }

  fs::path root_;
};

TEST_F(AvailableMemory, OfTheSystem) {
  EXPECT_EQ(available(), 200 * kMiB);
}

TEST_F(AvailableMemory, UnknownIsZero) {
  fs::remove_all(root_);
  EXPECT_EQ(available(), 0);
}

TEST_F(AvailableMemory, LeastOfAllGroupsAbove) {
  write("proc/self/cgroup", "0::/outer/inner\n");
  write("sys/fs/cgroup/outer/memory.max", std::to_string(150 * kMiB));
  write("sys/fs/cgroup/outer/memory.current", std::to_string(60 * kMiB));
  write("sys/fs/cgroup/outer/memory.stat", "anon 5\ninactive_file " + std::to_string(10 * kMiB));
  write("sys/fs/cgroup/outer/inner/memory.max", "max\n");
  write("sys/fs/cgroup/outer/inner/memory.current", "7\n");
  EXPECT_EQ(available(), 100 * kMiB);
}

TEST_F(AvailableMemory, InsideAContainerTheRootIsTheGroup) {
  write("proc/self/cgroup", "0::/docker/not-visible-here\n");
  write("sys/fs/cgroup/memory.max", std::to_string(50 * kMiB));
  write("sys/fs/cgroup/memory.current", std::to_string(20 * kMiB));
  EXPECT_EQ(available(), 30 * kMiB);
}

TEST_F(AvailableMemory, FirstVersionOfGroups) {
  write("proc/self/cgroup", "5:cpu:/x\n4:hugetlb,memory:/box\n");
  write("sys/fs/cgroup/memory/box/memory.limit_in_bytes", std::to_string(40 * kMiB));
  write("sys/fs/cgroup/memory/box/memory.usage_in_bytes", std::to_string(50 * kMiB));
  EXPECT_EQ(available(), 0);
}

TEST(AvailableMemoryHere, IsPlausible) {
  EXPECT_GT(available_memory(), kMiB);
}

}  // namespace
}  // namespace quire::llm
