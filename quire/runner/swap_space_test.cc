#include "quire/runner/swap_space.h"

#include <gtest/gtest.h>

#include <sys/stat.h>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>

#include "quire/base/error.h"
#include "quire/base/testing/temp_folder.h"
#include "quire/runner/kv_store.h"

namespace quire::runner {
namespace {

const std::vector<backend::CacheGroupSpec> kGroups = {
    {.num_layers = 3, .num_kv_heads = 2, .head_dim = 16, .dtype = DType::kBF16},
    {.num_layers = 1, .num_kv_heads = 1, .head_dim = 16, .dtype = DType::kF32, .block_tokens = 32}};
constexpr int64_t kBlockBytes = 2048 * 3 + 4096;

std::string error_of(const SwapSpace::Options& options) {
  try {
    const SwapSpace swap(options);
  } catch (const LoadError& error) {
    return error.what();
  }
  return "no error";
}

TEST(SwapSpace, ABlocksBytesLieTogetherGroupByGroup) {
  MemoryLedger ledger;
  const SwapSpace swap({.groups = kGroups, .num_blocks = 5, .ledger = &ledger});
  EXPECT_EQ(swap.block_bytes(), kBlockBytes);
  EXPECT_EQ(swap.group_offset(0), 0);
  EXPECT_EQ(swap.group_offset(1), 6144);
  EXPECT_EQ(swap.block(2).data(), swap.data() + 2 * kBlockBytes);
  EXPECT_EQ(ledger.current(MemoryTag::kSwapSpace), 5 * kBlockBytes);

  const KvStore store({.groups = kGroups, .num_blocks = 2, .swap = &swap, .ledger = &ledger});
  EXPECT_EQ(store.slabs()[1].swap, swap.data() + 6144);
  EXPECT_EQ(store.slabs()[1].swap_block_stride, kBlockBytes);
  EXPECT_EQ(store.slabs()[0].num_swap_blocks, 5);
}

TEST(SwapSpace, OfNoBlocksIsNothing) {
  const SwapSpace swap({.groups = kGroups, .num_blocks = 0});
  const KvStore store({.groups = kGroups, .num_blocks = 2, .swap = &swap});
  EXPECT_EQ(store.slabs()[0].swap, nullptr);
}

TEST(SwapSpace, AFolderHoldsAFileWithoutAName) {
  const TempFolder folder;
  MemoryLedger ledger;
  {
    SwapSpace swap(
        {.groups = kGroups, .num_blocks = 5, .folder = folder.path(), .ledger = &ledger});
    EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
    swap.reserve(4);
    std::memset(swap.data() + 4 * kBlockBytes, 7, kBlockBytes);
    EXPECT_EQ(swap.block(4).back(), std::byte{7});
    EXPECT_EQ(ledger.current(MemoryTag::kSwapSpace), 5 * kBlockBytes);
  }
  EXPECT_EQ(ledger.current(MemoryTag::kSwapSpace), 0);
}

TEST(SwapSpace, AKeptFileHoldsItsBlocksForItsOwnerAlone) {
  const TempFolder folder;
  const SwapSpace::Options options{
      .groups = kGroups, .num_blocks = 5, .file = folder.file("blocks")};
  {
    SwapSpace swap(options);
    swap.reserve(3);
    std::memset(swap.data() + 3 * kBlockBytes, 9, kBlockBytes);
    swap.sync();
  }
  struct stat info {};
  ASSERT_EQ(stat(options.file.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600u);
  const SwapSpace again(options);
  EXPECT_EQ(again.block(3).front(), std::byte{9});
  EXPECT_EQ(again.block(2).back(), std::byte{0});
}

TEST(SwapSpace, AKeptFileIsOneProcessesAlone) {
  const TempFolder folder;
  const SwapSpace::Options options{
      .groups = kGroups, .num_blocks = 5, .file = folder.file("blocks")};
  {
    const SwapSpace first(options);
    EXPECT_NE(error_of(options).find("in use"), std::string::npos);
  }
  EXPECT_EQ(error_of(options), "no error");
}

TEST(SwapSpace, ABadFolderAndAFullDiskAreNamed) {
  EXPECT_NE(error_of({.groups = kGroups, .num_blocks = 5, .folder = "/no/such/folder"})
                .find("/no/such/folder"),
            std::string::npos);
  const TempFolder folder;
  const std::string full =
      error_of({.groups = kGroups, .num_blocks = int64_t{1} << 40, .folder = folder.path()});
  EXPECT_NE(full.find("free on its disk"), std::string::npos) << full;
  EXPECT_NE(full.find("--swap-space"), std::string::npos) << full;
}

}  // namespace
}  // namespace quire::runner
