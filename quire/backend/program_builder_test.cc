#include "quire/backend/program_builder.h"

#include <gtest/gtest.h>

namespace quire::backend {
namespace {

std::shared_ptr<const PackedWeight> weight(int64_t in, int64_t out) {
  auto made = std::make_shared<PackedWeight>();
  made->spec.in = in;
  made->spec.out = out;
  return made;
}

std::shared_ptr<const PackedWeight> coded_weight(int64_t in, int64_t out) {
  auto made = std::make_shared<PackedWeight>();
  made->spec = {.name = "", .layout = Layout::kInt4Group, .in = in, .out = out, .group = 32};
  return made;
}

Program two_layer_mlp(int64_t max_tokens) {
  ProgramBuilder p({.max_tokens = max_tokens, .max_logits = 8, .cache_groups = {}});
  Tensor x = p.embed(weight(64, 100));
  for (int layer = 0; layer < 2; ++layer) {
    const ProgramBuilder::Scope scope(p, "layers." + std::to_string(layer));
    const Tensor h = p.rms_norm(x, std::vector<float>(64, 1.0f), 1e-5f);
    const Tensor gate = p.matmul(h, coded_weight(64, 128), {}, ActType::kI8, "gate");
    const Tensor up = p.matmul(h, coded_weight(64, 128), {}, ActType::kI8, "up");
    x = p.add(x, p.matmul(p.gated_act(gate, up), weight(128, 64), {}, ActType::kF32, "down"));
  }
  return p.finish(p.matmul(p.gather_logits_rows(x), weight(64, 100), {}, ActType::kF32, "head"));
}

TEST(ProgramBuilder, PreparesAnInputOncePerForm) {
  const Program program = two_layer_mlp(16);
  const auto prepares = std::count_if(program.ops.begin(), program.ops.end(),
                                      [](const Op& op) { return op.kind == OpKind::kPrepare; });
  EXPECT_EQ(prepares, 2);  // one a layer, shared by gate and up
  EXPECT_EQ(program.ops[2].name, "layers.0.prepare");
}

TEST(ProgramBuilder, TensorsAliveTogetherNeverOverlap) {
  const Program program = two_layer_mlp(16);
  const auto end_of = [&](const TensorDecl& t) {
    return t.offset + t.row_bytes * program.max_rows(t.rows);
  };
  for (const TensorDecl& a : program.tensors) {
    EXPECT_EQ(a.offset % 64, 0);
    EXPECT_LE(end_of(a), program.arena_bytes);
    for (const TensorDecl& b : program.tensors) {
      if (&a == &b || a.last_op < b.first_op || b.last_op < a.first_op) continue;
      EXPECT_TRUE(end_of(a) <= b.offset || end_of(b) <= a.offset) << a.name << " / " << b.name;
    }
  }
}

TEST(ProgramBuilder, LivenessKeepsTheArenaSmall) {
  const Program program = two_layer_mlp(1024);
  int64_t sum = 0;
  for (const TensorDecl& t : program.tensors) sum += t.row_bytes * program.max_rows(t.rows);
  // Widest moment: x, gate, up and the activation's output, and what died two operations before.
  const int64_t widest = 1024 * (row_bytes_of(TensorForm::kPlain, 64, 0) + 3 * 128 * 4);
  EXPECT_LE(program.arena_bytes, widest + 1024 * 768);
  EXPECT_LT(program.arena_bytes, sum / 2);
}

TEST(ProgramBuilder, ATiedWeightIsCountedOnce) {
  ProgramBuilder p({.max_tokens = 4, .max_logits = 4, .cache_groups = {}});
  const auto table = weight(64, 100);
  const Tensor x = p.embed(table);
  const Program program =
      p.finish(p.matmul(p.gather_logits_rows(x), table, {}, ActType::kF32, "head"));
  EXPECT_EQ(program.weights.size(), 1u);
  EXPECT_EQ(program.weight_bytes(), table->bytes());
}

TEST(ProgramBuilder, AStageBeginsWithAnInputAndEndsWithHiddenStates) {
  ProgramBuilder p({.max_tokens = 16, .max_logits = 8, .cache_groups = {}});
  const Tensor in = p.input(64);
  const Tensor h = p.rms_norm(in, std::vector<float>(64, 1.0f), 1e-5f);
  const Tensor out = p.add(in, p.matmul(h, weight(64, 64), {}, ActType::kF32, "proj"));
  const Program stage = p.finish_stage(out);
  EXPECT_EQ(stage.ops.size(), 3u) << "an input is no operation";
  EXPECT_EQ(stage.logits, -1);
  const TensorDecl& input = stage.tensors[static_cast<size_t>(in.index)];
  const TensorDecl& result = stage.tensors[static_cast<size_t>(out.index)];
  EXPECT_EQ(input.first_op, 0);
  EXPECT_EQ(input.last_op, 2);
  EXPECT_EQ(result.last_op, 3) << "it outlives the last operation";
  const int64_t size = 16 * result.row_bytes;
  EXPECT_TRUE(result.offset >= input.offset + size || input.offset >= result.offset + size);
}

TEST(WeightSpec, SlicesAreTheLargestCutIntoWholeGroups) {
  const auto slices = [](int64_t in, int64_t group) {
    WeightSpec spec;
    spec.layout = group == 0 ? Layout::kDense : Layout::kInt4Group;
    spec.in = in;
    spec.group = group;
    return num_slices(spec);
  };
  EXPECT_EQ(slices(576, 32), 2);   // 18 groups
  EXPECT_EQ(slices(1536, 32), 8);  // 48 groups
  EXPECT_EQ(slices(576, 0), 8);
  EXPECT_EQ(slices(4096, 128), 8);
  EXPECT_EQ(slices(33, 0), 1);
}

}  // namespace
}  // namespace quire::backend
