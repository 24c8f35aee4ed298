#include "quire/base/background_commit.h"

#include <sys/mman.h>

#include <chrono>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "quire/base/huge_buffer.h"

namespace quire {
namespace {

std::span<std::byte> all_of(const HugeBuffer& buffer) {
  return {buffer.data(), static_cast<size_t>(buffer.size())};
}

/// Pages of `range` that are in memory; it begins on a page.
int64_t resident_pages(std::span<std::byte> range) {
  std::vector<unsigned char> resident((range.size() + 4095) / 4096);
  EXPECT_EQ(mincore(range.data(), range.size(), resident.data()), 0);
  int64_t count = 0;
  for (const unsigned char page : resident) count += page & 1;
  return count;
}

void wait_until_done(const BackgroundCommit& commit) {
  while (!commit.done()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

TEST(BackgroundCommit, CommitsEveryPageAndKeepsWhatIsThere) {
  const HugeBuffer first(5 << 20, MemoryTag::kOther, nullptr);
  const HugeBuffer second((3 << 20) + 12345, MemoryTag::kOther, nullptr);
  first.data()[4097] = std::byte{7};
  ASSERT_LT(resident_pages(all_of(first)), 5 * 256);
  ASSERT_EQ(resident_pages(all_of(second)), 0);
  const BackgroundCommit commit({all_of(first), all_of(second)});
  wait_until_done(commit);
  EXPECT_EQ(commit.committed_bytes(), first.size() + second.size());
  EXPECT_EQ(resident_pages(all_of(first)), 5 * 256);
  EXPECT_EQ(resident_pages(all_of(second)), (second.size() + 4095) / 4096);
  EXPECT_EQ(first.data()[4097], std::byte{7});
  EXPECT_EQ(first.data()[4096], std::byte{0});
}

TEST(BackgroundCommit, StopsInTheMiddle) {
  const HugeBuffer large(int64_t{1} << 34, MemoryTag::kOther, nullptr);
  const auto begin = std::chrono::steady_clock::now();
  { const BackgroundCommit commit({all_of(large)}); }
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(5));
}

TEST(BackgroundCommit, PausesWhileThereIsWork) {
  const HugeBuffer large(int64_t{1} << 34, MemoryTag::kOther, nullptr);
  BackgroundCommit commit({all_of(large)});
  int64_t before = -1;
  int quiet = 0;  // times in a row that 5 ms brought nothing; a page takes 3 at most
  for (int i = 0; i < 2000 && quiet < 6; ++i) {
    commit.pause();
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    quiet = commit.committed_bytes() == before ? quiet + 1 : 0;
    before = commit.committed_bytes();
  }
  EXPECT_EQ(quiet, 6);
  while (commit.committed_bytes() == before) std::this_thread::yield();  // it goes on by itself
}

TEST(BackgroundCommit, GivesUpWhereNothingIsMapped) {
  void* const mapped =
      mmap(nullptr, 1 << 21, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  ASSERT_NE(mapped, MAP_FAILED);
  const BackgroundCommit commit({std::span(static_cast<std::byte*>(mapped), size_t{1} << 21)});
  wait_until_done(commit);  // the pages cannot be written
  EXPECT_EQ(commit.committed_bytes(), 0);
  munmap(mapped, 1 << 21);
}

}  // namespace
}  // namespace quire
