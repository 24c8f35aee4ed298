#include <gtest/gtest.h>

#include <memory>
#include <numeric>
#include <set>
#include <vector>

#include "quire/base/testing/temp_folder.h"
#include "quire/engine/engine_test_kit.h"
#include "quire/runner/kept_tier.h"

namespace quire::engine {
namespace {

/// One process with a folder for its cache: what it is asked, and what it found.
class Process {
 public:
  explicit Process(const std::string& folder)
      : swap_({.groups = {{.num_layers = 1, .num_kv_heads = 1, .head_dim = 8}},
               .num_blocks = 64,
               .file = runner::KeptTier::blocks_file(folder)}),
        tier_({.folder = folder, .key = "fake", .block_tokens = 16}, swap_) {
    EngineKit::Options options;
    options.engine.scheduler.enable_prefix_caching = true;
    options.engine.scheduler.num_swap_blocks = 64;
    options.engine.scheduler.cache_seed = tier_.cache_seed().value_or(99);
    options.engine.kept_tier = &tier_;
    kit_ = std::make_unique<EngineKit>(options);
  }
  EngineKit& kit() { return *kit_; }
  std::vector<int32_t> prompt(int32_t length) const {
    std::vector<int32_t> made(static_cast<size_t>(length));
    std::iota(made.begin(), made.end(), 1);
    return made;
  }
  int64_t cached_tokens(int32_t length) {
    return kit_->run(kit_->request(prompt(length), 2)).summary->num_cached_tokens;
  }

 private:
  runner::SwapSpace swap_;
  runner::KeptTier tier_;
  std::unique_ptr<EngineKit> kit_;  // dies first: then its cache is written
};

TEST(EngineCache, AnEndedEngineLeavesItsCacheToTheNext) {
  const TempFolder folder;
  {
    Process first(folder.path());
    EXPECT_EQ(first.cached_tokens(70), 0);
  }
  Process second(folder.path());
  EXPECT_EQ(second.cached_tokens(70), 64);
  EXPECT_EQ(second.cached_tokens(70), 64);  // from the pool by now
  second.kit().engine->stop();
  const EngineStats stats = second.kit().engine->stats();
  EXPECT_EQ(stats.swap.tier_hits, 64);
  EXPECT_EQ(stats.swap.blocks_in, 4);
}

TEST(EngineCache, RequestsThatAreCutOffByTheEndLeaveTheirsToo) {
  const TempFolder folder;
  {
    Process first(folder.path());
    OutputStream stream = first.kit().submit(first.kit().request(first.prompt(70), 400));
    std::vector<OutputEvent> events;
    ASSERT_TRUE(stream.wait(events));
    first.kit().engine->stop();
  }
  EXPECT_EQ(Process(folder.path()).cached_tokens(70), 64);
}

TEST(EngineCache, TellsWhichBlocksHoldNothingAnyMore) {
  std::multiset<int32_t> freed;
  EngineKit::Options options;
  options.engine.on_block_freed = [&freed](int32_t block) { freed.insert(block); };
  {
    EngineKit kit(options);
    kit.run(kit.request(std::vector<int32_t>(40, 1), 2));
    kit.run(kit.request(std::vector<int32_t>(20, 1), 2));
    kit.engine->stop();
  }
  EXPECT_EQ(freed.size(), 5u);  // three and two
}

}  // namespace
}  // namespace quire::engine
