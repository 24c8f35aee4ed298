#include "quire/runner/model_runner.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <new>

#include "quire/runner/kv_store.h"

namespace {
std::atomic<int64_t> num_allocations{0};
}  // namespace

void* operator new(size_t size, const std::nothrow_t& /*tag*/) noexcept {
  ++num_allocations;
  return std::malloc(size);
}
void* operator new(size_t size) {
  if (void* memory = operator new(size, std::nothrow)) return memory;
  throw std::bad_alloc();
}
void operator delete(void* memory) noexcept {
  std::free(memory);
}
void operator delete(void* memory, size_t /*size*/) noexcept {
  std::free(memory);
}

namespace quire::runner {
namespace {

constexpr int64_t kVocab = 64;
constexpr int64_t kStride = 80;

/// Logits row r has its largest value at (token + position) of the token it reads.
class ScriptedBackend final : public backend::Backend {
 public:
  std::string_view name() const override { return "scripted"; }
  std::string unsupported(const backend::Program&, const backend::Op&) const override { return ""; }
  backend::ActType preferred_activation(const backend::WeightSpec&) const override {
    return backend::ActType::kF32;
  }
  std::shared_ptr<const backend::PackedWeight> pack(const backend::WeightReader&) override {
    return nullptr;
  }
  void load(std::shared_ptr<const backend::Program>, std::span<const backend::KvSlab>) override {}
  void copy_blocks(std::span<const backend::BlockCopy> given) override {
    copies.insert(copies.end(), given.begin(), given.end());
  }
  void launch(const backend::StepMeta& meta) override {
    ++num_launches;
    seen = meta;
    for (int64_t r = 0; r < meta.num_logits(); ++r) {
      const auto at = static_cast<size_t>(meta.logits_rows[static_cast<size_t>(r)]);
      float* row = logits_.data() + r * kStride;
      for (int64_t v = 0; v < kVocab; ++v) row[v] = 0.01f * static_cast<float>(v % 7);
      row[(meta.token_ids[at] + meta.positions[at]) % kVocab] = 9.0f;
    }
  }
  void wait() override {}
  const float* logits() const override { return logits_.data(); }
  int64_t logits_stride() const override { return kStride; }
  void parallel(const std::function<void(int, int)>& fn) override {
    for (int worker = 0; worker < 3; ++worker) fn(worker, 3);
  }
  int num_workers() const override { return 3; }

  backend::StepMeta seen;
  std::vector<backend::BlockCopy> copies;
  int num_launches = 0;

 private:
  std::vector<float> logits_ = std::vector<float>(16 * kStride);
};

/// One row of prompt 5 7 (its first prompt token scored), one of a single token 11 in row 3.
sched::BatchPlan two_row_plan() {
  sched::BatchPlan plan;
  plan.started.resize(2);
  plan.started[0].row = 1;
  plan.started[0].prompt = {5, 7};
  plan.started[0].sampling = {.temperature = 0, .logprobs = 1, .prompt_logprobs = 0};
  plan.started[1].row = 3;
  plan.started[1].prompt = {11};
  plan.started[1].sampling = {.temperature = 0};
  plan.rows = {{.row = 1, .query_start = 0, .num_tokens = 2, .context_len = 2},
               {.row = 3, .query_start = 2, .num_tokens = 1, .context_len = 1}};
  plan.tokens = {5, 7, 11};
  plan.positions = {0, 1, 0};
  plan.groups = {{.slots = {16, 17, 32}, .block_table = {1, 2}, .table_width = 1}};
  plan.logits_rows = {0, 1, 2};
  using Kind = sched::LogitsUse::Kind;
  plan.uses = {
      {.kind = Kind::kPromptLogprob, .row = 1, .logits_index = 0, .position = 1, .target = 7},
      {.kind = Kind::kSample, .row = 1, .logits_index = 1, .position = 2},
      {.kind = Kind::kSample, .row = 3, .logits_index = 2, .position = 1}};
  return plan;
}

TEST(ModelRunner, BindsThePlanAndSamplesItsRows) {
  ScriptedBackend backend;
  ModelRunner runner({.vocab_size = kVocab, .max_num_seqs = 4}, backend);
  const sched::BatchPlan plan = two_row_plan();
  runner.launch(plan);
  EXPECT_EQ(backend.seen.token_ids.data(), plan.tokens.data());  // views, not copies
  EXPECT_EQ(backend.seen.positions.data(), plan.positions.data());
  EXPECT_EQ(backend.seen.groups[0].slots.data(), plan.groups[0].slots.data());
  EXPECT_EQ(backend.seen.groups[0].block_tables.data(), plan.groups[0].block_table.data());
  EXPECT_EQ(backend.seen.groups[0].table_width, 1);
  EXPECT_EQ(std::vector<int32_t>(backend.seen.query_start.begin(), backend.seen.query_start.end()),
            (std::vector<int32_t>{0, 2, 3}));
  EXPECT_EQ(std::vector<int32_t>(backend.seen.context_len.begin(), backend.seen.context_len.end()),
            (std::vector<int32_t>{2, 1}));
  const StepOutput& output = runner.finish();
  ASSERT_EQ(output.tokens.size(), 2U);
  EXPECT_EQ(output.tokens[0].token, 8);
  EXPECT_EQ(output.tokens[1].token, 11);
  ASSERT_EQ(output.logprobs.size(), 3U);
  EXPECT_EQ(output.logprobs[0].chosen.token, 7);
  EXPECT_GT(output.logprobs[0].chosen.rank, 1);
  EXPECT_EQ(output.logprobs[1].chosen.token, 8);
  EXPECT_EQ(output.logprobs[1].chosen.rank, 1);
  ASSERT_EQ(output.logprobs[1].top.size(), 1U);
  EXPECT_EQ(output.logprobs[1].top[0].token, 8);
  EXPECT_EQ(output.logprobs[2].chosen.token, -1);
}

const std::vector<backend::CacheGroupSpec> kTwoGroups = {
    {.num_layers = 3, .num_kv_heads = 2, .head_dim = 16, .dtype = DType::kBF16},
    {.num_layers = 1, .num_kv_heads = 1, .head_dim = 16, .dtype = DType::kF32, .block_tokens = 32}};

TEST(ModelRunner, BlockOperationsReachTheBackendInTheirOrder) {
  ScriptedBackend backend;
  SwapSpace swap({.groups = kTwoGroups, .num_blocks = 8});
  ModelRunner runner({.vocab_size = kVocab, .max_num_seqs = 4, .swap = &swap}, backend);
  sched::BatchPlan plan;  // of block operations alone: nothing is run
  using Op = sched::BlockOp::Kind;
  plan.block_ops = {{.kind = Op::kSwapOut, .group = 0, .source = 1, .destination = 7},
                    {.kind = Op::kCopy, .group = 0, .source = 2, .destination = 1},
                    {.kind = Op::kSwapIn, .group = 1, .source = 7, .destination = 2}};
  runner.launch(plan);
  EXPECT_TRUE(runner.finish().tokens.empty());
  EXPECT_EQ(backend.num_launches, 0);
  using Kind = backend::BlockCopy::Kind;
  const std::vector<std::array<int, 4>> expected = {{int(Kind::kSwapOut), 0, 1, 7},
                                                    {int(Kind::kWithinPool), 0, 2, 1},
                                                    {int(Kind::kSwapIn), 1, 7, 2}};
  ASSERT_EQ(backend.copies.size(), expected.size());
  for (size_t i = 0; i < expected.size(); ++i) {
    const backend::BlockCopy& copy = backend.copies[i];
    EXPECT_EQ((std::array{int(copy.kind), copy.group, copy.source, copy.destination}), expected[i]);
  }
}

TEST(ModelRunner, PoisonsTheBlocksThatAStepBegins) {
  ScriptedBackend backend;
  KvStore store({.groups = {kTwoGroups[0]}, .num_blocks = 4});
  ModelRunner runner({.vocab_size = kVocab, .max_num_seqs = 4, .poisoned = &store}, backend);
  sched::BatchPlan plan = two_row_plan();
  plan.groups[0].slots = {17, 18, 32};  // the middle of block 1, the start of block 2
  runner.launch(plan);
  runner.finish();
  const backend::KvSlab& slab = store.slabs()[0];
  const int64_t bytes = kTwoGroups[0].block_layer_bytes();
  for (int64_t block = 0; block < 4; ++block) {
    const std::byte expected{static_cast<unsigned char>(block == 2 ? 0xff : 0)};
    EXPECT_EQ(slab.data[2 * slab.layer_stride + block * bytes], expected) << block;
    EXPECT_EQ(slab.data[(block + 1) * bytes - 1], expected) << block;
  }
}

TEST(ModelRunner, AllocatesNothingOnceWarm) {
  ScriptedBackend backend;
  SwapSpace swap({.groups = kTwoGroups, .num_blocks = 8});
  ModelRunner runner({.vocab_size = kVocab, .max_num_seqs = 4, .swap = &swap}, backend);
  sched::BatchPlan plan = two_row_plan();
  plan.uses.erase(plan.uses.begin());
  plan.started[0].sampling = {.temperature = 0.8f,
                              .top_p = 0.9f,
                              .top_k = 20,
                              .repetition_penalty = 1.2f,
                              .frequency_penalty = 0.1f,
                              .max_tokens = 1000};
  runner.launch(plan);
  runner.finish();
  plan.started.clear();
  plan.block_ops = {{.kind = sched::BlockOp::Kind::kSwapOut, .source = 1, .destination = 2},
                    {.kind = sched::BlockOp::Kind::kSwapIn, .source = 2, .destination = 1}};
  backend.copies.reserve(1000);
  runner.launch(plan);
  runner.finish();
  const int64_t before = num_allocations;
  for (int step = 0; step < 200; ++step) {
    for (sched::LogitsUse& use : plan.uses) ++use.position;
    runner.launch(plan);
    runner.finish();
  }
  EXPECT_EQ(num_allocations - before, 0);
}

TEST(KvStore, OneSlabAGroupCountedInTheLedger) {
  const std::vector<backend::CacheGroupSpec>& groups = kTwoGroups;
  MemoryLedger ledger;
  KvStore store({.groups = groups, .num_blocks = 5, .ledger = &ledger});
  ASSERT_EQ(store.slabs().size(), 2U);
  // K and V of 16 tokens: 2 * 16 * 16 * 2 bytes a head, two heads, three layers, five blocks.
  EXPECT_EQ(store.slabs()[0].layer_stride, 1024 * 2 * 5);
  EXPECT_EQ(store.bytes(), 1024 * 2 * 5 * 3 + 2 * 2048 * 5);
  EXPECT_EQ(store.bytes(), KvStore::bytes_for(groups, 5));
  EXPECT_EQ(ledger.current(MemoryTag::kKvCache), store.bytes());
  store.poison();
  float number = 0;
  std::memcpy(&number, store.slabs()[1].data + 100, sizeof(number));
  EXPECT_NE(number, number);
}

TEST(TokenCounts, CountsEachTokenOnceInOrder) {
  TokenCounts counts;
  for (int round = 0; round < 2; ++round) {
    counts.reset(300);
    for (int32_t token = 299; token >= 0; --token) counts.add_prompt(token * 1024);
    counts.add_output(1024);
    counts.add_output(1024);
    ASSERT_EQ(counts.entries().size(), 300U);
    EXPECT_EQ(counts.entries()[0].token, 299 * 1024);
    EXPECT_EQ(counts.entries()[0].num_output, 0);
    EXPECT_EQ(counts.entries()[298].token, 1024);
    EXPECT_EQ(counts.entries()[298].num_output, 2);
  }
}

}  // namespace
}  // namespace quire::runner
