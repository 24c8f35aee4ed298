// The plan's figures are the engine's: what `quire plan` counts is what an opened model has taken,
// byte for byte, from a folder and from its config.json alone.
#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "quire/checkpoint/testing/temp_folder.h"
#include "quire/llm/kv_sizing.h"
#include "quire/llm/llm.h"
#include "quire/plan/plan.h"
#include "tests/golden/tiny_model.h"

namespace quire {
namespace {

llm::Options options_for(const std::string& folder, const std::string& dtype) {
  llm::Options options;
  options.model = folder;
  options.dtype = dtype;
  options.max_num_seqs = 2;
  options.max_num_batched_tokens = 64;
  options.threads = 1;
  return options;
}

plan::Plan plan_for(const std::string& path, const llm::Options& options) {
  plan::PlanOptions wanted;
  wanted.device.name = "test";
  wanted.device.workers = options.threads;
  wanted.memory_bytes = int64_t{64} << 30;
  wanted.max_num_seqs = options.max_num_seqs;
  wanted.record.dtype = options.dtype;
  wanted.record.max_tokens = options.max_num_batched_tokens;
  wanted.record.max_logits = 64;
  wanted.size_pool = [&options](const plan::PoolDemand& demand) -> plan::PoolSize {
    const llm::KvSize size = llm::size_kv(options, {.block_bytes = demand.block_bytes,
                                                    .block_tokens = demand.block_tokens,
                                                    .model_max_len = demand.length,
                                                    .fixed_bytes = demand.fixed_bytes,
                                                    .available_bytes = demand.memory_bytes});
    return {.num_blocks = size.num_blocks, .max_model_len = size.max_model_len};
  };
  return plan::make_plan(plan::open_planned_model(path), wanted);
}

void expect_same(const plan::Plan& plan, const llm::MemoryReport& memory,
                 const std::string& which) {
  using Part = plan::LedgerLine::Part;
  ASSERT_EQ(plan.ranks.size(), 1u);
  const plan::RankLedger& rank = plan.ranks.front();
  EXPECT_EQ(rank.bytes(Part::kWeights), memory.weights) << which;
  EXPECT_EQ(rank.bytes(Part::kArena) + rank.bytes(Part::kScratch), memory.arena) << which;
  EXPECT_EQ(plan.pool_bytes(rank), memory.kv_cache) << which;
  EXPECT_EQ(plan.num_blocks, memory.num_blocks) << which;
  EXPECT_EQ(plan.max_model_len, memory.max_model_len) << which;
  EXPECT_EQ(rank.exact_bytes(),
            memory.weights + memory.arena + memory.worker_scratch + memory.other)
      << which;
}

// Opening aborts when the ledger's bytes differ from the report's (open_parts.cc).
TEST(PlanLedger, CountedEqualsTaken) {
  for (const golden::TinyModel& model : golden::tiny_models()) {
    for (const char* dtype : {"auto", "float32", "bfloat16"}) {
      const checkpoint::testing::TempFolder folder;
      golden::write_folder(model, folder.path());
      const llm::Options options = options_for(folder.path(), dtype);
      const llm::LLM opened(options);
      const std::string which = model.name + " " + dtype;
      expect_same(plan_for(folder.path(), options), opened.memory(), which);
      const std::string config = (std::filesystem::path(folder.path()) / "config.json").string();
      expect_same(plan_for(config, options), opened.memory(), which + ", config.json alone");
    }
  }
}

}  // namespace
}  // namespace quire
