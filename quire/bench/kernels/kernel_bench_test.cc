#include "quire/bench/kernels/kernel_bench.h"

#include <cmath>
#include <set>

#include <gtest/gtest.h>
#include <boost/json.hpp>

#include "quire/backend/cpu/matmul_cases.h"
#include "quire/base/error.h"
#include "quire/bench/kernels/kernel_program.h"
#include "quire/bench/kernels/kernel_report.h"
#include "quire/bench/step_vectors.h"

namespace quire::bench {
namespace {

using backend::ActType;
using backend::OpKind;
namespace cpu = backend::cpu;

TEST(CeilingShare, TheCeilingThatTakesLongerBinds) {
  bool memory_bound = false;
  // 8 GB at 40 GB/s takes 0.2 s, 100 GOP at 1,000 GOP/s 0.1 s.
  EXPECT_NEAR(ceiling_share(8e9, 100e9, 0.25, 40, 1000, memory_bound), 0.8, 1e-12);
  EXPECT_TRUE(memory_bound);
  EXPECT_NEAR(ceiling_share(8e9, 400e9, 0.5, 40, 1000, memory_bound), 0.8, 1e-12);
  EXPECT_FALSE(memory_bound);
  EXPECT_NEAR(ceiling_share(8e9, 400e9, 0.5, 40, 0, memory_bound), 0.4, 1e-12);
}

TEST(ParseShape, OutputsTimesInputs) {
  const LinearShape shape = parse_shape("4096x14336", "--shapes");
  EXPECT_EQ(shape.out, 4096);
  EXPECT_EQ(shape.in, 14336);
  for (const char* wrong :
       {"", "4096", "x", "4096x", "x64", "64x63", "64x64x64", "0x64", "-1x64"}) {
    EXPECT_THROW(parse_shape(wrong, "--shapes"), LoadError) << wrong;
  }
}

TEST(NumCopies, FillTheColdMemoryAndOneMore) {
  EXPECT_EQ(num_copies(10, 100), 11);
  EXPECT_EQ(num_copies(1000, 100), 3);
  EXPECT_EQ(num_copies(1, 1 << 30), 1024);
}

// Every repetition prepares its input anew, and computes what the recorded program would.
TEST(LinearProgram, RepeatsTheOperationOverTheWeights) {
  cpu::CpuBackend::Options options;
  options.num_threads = 2;
  options.time_ops = true;
  cpu::CpuBackend backend(options);
  const auto pack = [&](const backend::WeightSpec& spec, uint64_t seed) {
    return backend.pack(cpu::RandomWeight(spec, seed));
  };
  const auto table = pack(cpu::dense_spec(DType::kF32, 64, 8), 1);
  std::vector<std::shared_ptr<const backend::PackedWeight>> weights;
  for (uint64_t seed = 0; seed < 3; ++seed)
    weights.push_back(pack(cpu::int8_spec(64, 48, 32), seed));
  const KernelProgram kernel = linear_program(table, weights, ActType::kI8, 4);
  EXPECT_EQ(kernel.repetitions, 2);
  std::set<int32_t> used;
  int prepared = 0;
  for (const backend::Op& op : kernel.program->ops) {
    if (op.kind == OpKind::kMatmul) used.insert(op.weight);
    if (op.kind == OpKind::kPrepare) ++prepared;
  }
  EXPECT_EQ(used.size(), 3u);
  EXPECT_EQ(prepared, 3);
  backend.load(kernel.program, {});
  StepVectors step(0, 0);
  step.add_row(some_tokens(4, 8, 0), 0, 0);
  EXPECT_GT(seconds_a_repetition(backend, kernel, step.meta()), 0);
}

TEST(BenchKernels, MeasuresWhatIsAskedFor) {
  KernelBenchOptions options;
  options.threads = 2;
  options.rounds = 2;
  options.layouts = {"bf16", "int4-g32", "int4-g128"};
  options.shapes = {{64, 96}};  // no whole group of 128
  options.rows = {1, 3};
  options.contexts = {40};
  options.attention = {{"4/2 heads of 16", 4, 2, 16}};
  options.cold_bytes = 1 << 16;
  options.ceiling_bytes = 1 << 20;
  int last = -1;
  options.on_progress = [&](int done, int total) {
    EXPECT_LE(done, total);
    last = done;
  };
  const KernelBenchResult result = bench_kernels(options);
  EXPECT_EQ(last, 2 + 3 + 2);  // bf16 by two types, int4 by three, attention by two
  ASSERT_EQ(result.linear.size(), 2u * (2 + 3));
  ASSERT_EQ(result.attention.size(), 2u);
  for (const LinearResult& row : result.linear) {
    EXPECT_GT(row.time.seconds, 0);
    EXPECT_NEAR(row.time.gops,
                2.0 * static_cast<double>(row.rows) * 64 * 96 / row.time.seconds / 1e9, 1e-6);
    EXPECT_GT(row.time.share, 0);
  }
  for (const AttentionResult& row : result.attention) {
    const double bytes = 3 * 16 * 2 * 2 * 16 * (row.kv_dtype == "BF16" ? 2 : 4);
    EXPECT_NEAR(row.time.gbs * 1e9 * row.time.seconds, bytes, 1e-3);
    EXPECT_GT(row.raw_read_gbs, 0);
  }
  EXPECT_GT(result.ceilings.read_gbs, 0);
  const boost::json::object json = kernels_json(result);
  EXPECT_EQ(json.at("linear").as_array().size(), result.linear.size());
  EXPECT_NE(format_kernels(result, false).find("int4-g32 x int8"), std::string::npos);
  EXPECT_NE(format_kernels(result, true).find("|---|"), std::string::npos);
}

TEST(BenchKernels, UnknownNamesAreRefused) {
  KernelBenchOptions options;
  options.layouts = {"int5"};
  EXPECT_THROW(bench_kernels(options), LoadError);
  options.layouts = {};
  options.activations = {"int4"};
  EXPECT_THROW(bench_kernels(options), LoadError);
  options.activations = {};
  options.rows = {0};
  EXPECT_THROW(bench_kernels(options), LoadError);
}

}  // namespace
}  // namespace quire::bench
