#include "quire/backend/cpu/schedule.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "quire/backend/cpu/testing/tiny_llama.h"

namespace quire::backend::cpu {
namespace {

/// "embed rms_norm | matmul matmul | ..."
std::string text_of(const Program& program, const std::vector<Phase>& phases) {
  std::string text;
  for (const Phase& phase : phases) {
    if (!text.empty()) text += " |";
    for (int32_t op = phase.first_op; op < phase.last_op; ++op) {
      text += text.empty() ? "" : " ";
      text += op_kind_name(program.ops[static_cast<size_t>(op)].kind);
    }
  }
  return text;
}

TEST(Schedule, ALlamaLayerTakesNinePhases) {
  TinyConfig config;
  config.layers = 2;
  config.layout = Layout::kInt4Group;
  config.act = ActType::kI8;
  CpuBackend::Options options;
  options.num_threads = 1;
  CpuBackend backend(options);
  const TinyLlama model(config, backend);
  const auto program = model.record();
  const std::string layer =
      " | matmul matmul matmul | rope rope store_kv | attention | prepare | matmul"
      " | add rms_norm prepare | matmul matmul | gated_act prepare | matmul";
  EXPECT_EQ(text_of(*program, make_schedule(*program)),
            "embed rms_norm prepare" + layer + " | add rms_norm prepare" + layer +
                " | add | gather_rows rms_norm prepare | matmul");
}

/// Three tensors of 4 rows and two adds: t2 = t0 + t1, t3 = t2 + t1.
Program two_adds() {
  Program program;
  program.max_tokens = 4;
  for (int i = 0; i < 4; ++i) {
    TensorDecl t;
    t.cols = 16;
    t.row_bytes = 64;
    t.offset = i * 256;
    program.tensors.push_back(t);
  }
  for (int i = 0; i < 2; ++i) {
    Op op;
    op.kind = OpKind::kAdd;
    op.in = {i == 0 ? 0 : 2, 1};
    op.out = i == 0 ? 2 : 3;
    program.ops.push_back(op);
  }
  return program;
}

size_t num_phases(const Program& program) {
  return make_schedule(program).size();
}

TEST(Schedule, RowsThatStayInPlaceNeedNoBarrier) {
  EXPECT_EQ(num_phases(two_adds()), 1u);
}

TEST(Schedule, SharedStorageWithOtherRowsNeedsABarrier) {
  Program program = two_adds();
  program.tensors[3].offset = 0;  // t3 takes t0's place, row for row: still by row
  EXPECT_EQ(num_phases(program), 1u);
  program.tensors[3].offset = 64;  // row r of t3 is row r + 1 of t0: write after read
  EXPECT_EQ(num_phases(program), 2u);
  program.tensors[3].offset = 0;
  program.tensors[3].row_bytes = 128;
  EXPECT_EQ(num_phases(program), 2u);
}

TEST(Schedule, WriteAfterWriteNeedsABarrier) {
  Program program = two_adds();
  program.ops[1].in = {1, 1};
  program.tensors[3].offset = 2 * 256 + 64;
  EXPECT_EQ(num_phases(program), 2u);
}

TEST(Schedule, MatmulsThatReadAnEarlierResultWait) {
  Program program = two_adds();
  for (Op& op : program.ops) op.kind = OpKind::kMatmul;
  program.ops[0].in = {0, -1};
  program.ops[1].in = {0, -1};
  EXPECT_EQ(num_phases(program), 1u);
  program.ops[1].in = {2, -1};
  EXPECT_EQ(num_phases(program), 2u);
}

TEST(Schedule, AGatherReadsRowsOfOthers) {
  Program program = two_adds();
  program.ops[1].kind = OpKind::kGatherRows;
  program.ops[1].in = {2, -1};
  EXPECT_EQ(num_phases(program), 2u);
  program.tensors[3].rows = Rows::kLogits;
  program.max_logits = 2;
  EXPECT_EQ(num_phases(program), 2u);
}

}  // namespace
}  // namespace quire::backend::cpu
