#include "quire/backend/dryrun/dryrun_backend.h"

#include <gtest/gtest.h>

#include "quire/backend/program_builder.h"

namespace quire::backend::dryrun {
namespace {

/// A reader whose rows must never be asked for.
class SpecOnly final : public WeightReader {
 public:
  explicit SpecOnly(WeightSpec spec) : spec_(std::move(spec)) {}
  const WeightSpec& spec() const override { return spec_; }
  void read(int64_t /*begin*/, int64_t /*count*/, WeightRows& /*rows*/) const override {
    ADD_FAILURE() << "a dry run read a weight";
  }
  void done() const override { ADD_FAILURE() << "a dry run released a weight"; }

 private:
  WeightSpec spec_;
};

/// embed -> q, k, v -> attention -> head, hidden 64, 2 heads and 1 kv head of 32, vocabulary 160.
std::shared_ptr<const Program> tiny_program(Backend& backend, int32_t window = 0) {
  const auto pack = [&](Layout layout, int64_t out, int64_t in) {
    const bool coded = layout != Layout::kDense;
    return backend.pack(SpecOnly({.name = {},
                                  .layout = layout,
                                  .dtype = DType::kBF16,
                                  .in = in,
                                  .out = out,
                                  .group = coded ? 32 : 0,
                                  .offset = coded ? Offset::kMin : Offset::kNone}));
  };
  ProgramBuilder p({.max_tokens = 64,
                    .max_logits = 4,
                    .cache_groups = {{.num_layers = 1, .num_kv_heads = 1, .head_dim = 32}}});
  const AttentionShape shape{
      .num_heads = 2, .num_kv_heads = 1, .head_dim = 32, .scale = 1, .window = window};
  const auto table = pack(Layout::kDense, 160, 64);
  const auto project = [&](Tensor x, int64_t out, std::string_view name) {
    const auto weight = pack(Layout::kInt4Group, out, 64);
    return p.matmul(x, weight, {}, backend.preferred_activation(weight->spec), name);
  };
  const Tensor x = p.embed(table);
  const Tensor q = project(x, 64, "q");
  p.store_kv(project(x, 32, "k"), project(x, 32, "v"), shape, 0, 0);
  const Tensor rows = p.gather_logits_rows(p.attention(q, shape, 0, 0));
  return std::make_shared<const Program>(
      p.finish(p.matmul(rows, table, {}, backend.preferred_activation(table->spec), "head")));
}

const OpCost& named(const std::vector<OpCost>& costs, std::string_view name) {
  for (const OpCost& cost : costs) {
    if (cost.name == name) return cost;
  }
  ADD_FAILURE() << "no operation " << name;
  return costs.front();
}

TEST(DryRun, CountsMemory) {
  DryRunBackend backend;
  const auto program = tiny_program(backend);
  backend.load(program, {});
  const ProgramMemory memory = backend.memory();
  ASSERT_EQ(memory.weights.size(), 2u);
  EXPECT_EQ(memory.weights[0].layout, "dense bf16");
  EXPECT_EQ(memory.weights[0].count, 1) << "the table serves as head too and is counted once";
  EXPECT_EQ(memory.weights[0].bytes, 160 * 64 * 2);
  EXPECT_EQ(memory.weights[1].layout, "int4 group 32 with minimum");
  EXPECT_EQ(memory.weights[1].count, 3);
  EXPECT_EQ(memory.weights[1].parameters, 128 * 64);
  EXPECT_EQ(memory.weights[1].bytes, 128 * 64 / 2 + 128 * 2 * 4);
  EXPECT_EQ(memory.weight_bytes() + memory.vector_bytes, program->weight_bytes());
  EXPECT_EQ(memory.arena_bytes, program->arena_bytes);
  ASSERT_EQ(memory.kv.size(), 1u);
  EXPECT_EQ(memory.kv[0].token_bytes, 2 * 32 * 2);
  EXPECT_EQ(memory.kv[0].block_bytes, 16 * 2 * 32 * 2);
}

TEST(DryRun, CountsAStepFromItsMeta) {
  DryRunBackend backend;
  const auto program = tiny_program(backend);
  backend.load(program, {});
  // A prompt of 20 tokens, and one token after a context of 40.
  const std::vector<int32_t> tokens(21);
  const std::vector<int32_t> query_start = {0, 20, 21};
  const std::vector<int32_t> context_len = {20, 41};
  const std::vector<int32_t> logits_rows = {19, 20};
  backend.launch({.token_ids = tokens,
                  .positions = tokens,
                  .query_start = query_start,
                  .context_len = context_len,
                  .logits_rows = logits_rows,
                  .groups = {}});
  backend.wait();
  const auto& costs = backend.last_step();
  ASSERT_EQ(costs.size(), program->ops.size());

  const OpCost& q = named(costs, "q");
  EXPECT_EQ(q.operations, 2 * 21 * 64 * 64);
  EXPECT_EQ(q.weight_bytes, 64 * 64 / 2 + 64 * 2 * 4);
  EXPECT_EQ(q.act_bytes, 21 * (row_bytes_of(TensorForm::kPreparedI8, 64, 32) + int64_t{64} * 4));
  EXPECT_EQ(named(costs, "head").operations, 2 * 2 * 160 * 64) << "R rows, not T";
  EXPECT_EQ(named(costs, "embed").weight_bytes, 21 * 64 * 2);
  EXPECT_EQ(named(costs, "store_kv").kv_bytes, 21 * 2 * 32 * 2);

  const OpCost& attention = named(costs, "attention");
  EXPECT_EQ(attention.operations, 4 * (20 * 21 / 2 + 41) * 64);
  EXPECT_EQ(attention.kv_bytes, (2 + 3) * 2 * 16 * 32 * 2) << "whole pages";
  int64_t bytes = 0;
  for (const OpCost& cost : costs) bytes += cost.bytes();
  EXPECT_EQ(total_cost(costs).bytes(), bytes);
  EXPECT_EQ(backend.logits()[159], 0.0f);
}

TEST(DryRun, AWindowBoundsWhatAttentionReads) {
  DryRunBackend backend;
  const auto program = tiny_program(backend, 32);
  const auto costs =
      step_cost(*program, {.rows = {{.new_tokens = 1, .context_len = 100}}, .num_logits = 1});
  const OpCost& attention = named(costs, "attention");
  EXPECT_EQ(attention.operations, 4 * 32 * 64);
  // Positions 68 to 99: pages 4, 5 and 6.
  EXPECT_EQ(attention.kv_bytes, 3 * 2 * 16 * 32 * 2);
}

TEST(DryRun, StandsInForAnotherBackend) {
  DryRunBackend backend({.preferred_activation = [](const WeightSpec&) { return ActType::kF32; },
                         .unsupported = [](const Program&, const Op& op) { return op.name; }});
  const auto program = tiny_program(backend);
  for (const Op& op : program->ops) {
    EXPECT_NE(op.kind, OpKind::kPrepare);
    EXPECT_EQ(backend.unsupported(*program, op), op.name);
  }
}

}  // namespace
}  // namespace quire::backend::dryrun
