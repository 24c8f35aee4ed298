#include "quire/bench/model/model_bench.h"

#include <numeric>

#include <gtest/gtest.h>
#include <boost/json.hpp>

#include "quire/base/error.h"
#include "quire/bench/model/loaded_program.h"
#include "quire/bench/model/model_report.h"
#include "quire/bench/model/program_cost.h"
#include "quire/bench/testing/tiny_gguf.h"
#include "quire/checkpoint/testing/temp_folder.h"

namespace quire::bench {
namespace {

using backend::ActType;

class ModelBenchTest : public ::testing::Test {
 protected:
  ModelBenchOptions options() const {
    ModelBenchOptions options;
    options.llm.model = path_;
    options.llm.threads = 2;
    options.prefills = {20, 40};
    options.batches = {1, 3};
    options.context = 17;
    options.decode_tokens = 8;
    options.rounds = 2;
    options.ceiling_bytes = 1 << 20;
    return options;
  }

  checkpoint::testing::TempFolder folder_;
  std::string path_ = testing::write_tiny_gguf(folder_.path());
};

TEST_F(ModelBenchTest, MeasuresEveryTestAndOperation) {
  ModelBenchOptions options = this->options();
  options.with_ops = true;
  int last = -1;
  options.on_progress = [&](int done, int total) {
    EXPECT_EQ(total, 2 * 4);
    EXPECT_EQ(done, ++last);
  };
  const ModelBenchResult result = bench_model(options);
  EXPECT_EQ(last, 8);
  ASSERT_EQ(result.rates.size(), 4u);
  EXPECT_TRUE(result.rates[0].is_prefill);
  EXPECT_EQ(result.rates[1].tokens, 40);
  EXPECT_EQ(result.rates[3].batch, 3);
  for (const ModelRate& rate : result.rates) {
    EXPECT_GT(rate.tokens_per_s, 0);
    EXPECT_GT(rate.read_share, 0);
    EXPECT_GT(rate.peak_share, 0);
  }
  EXPECT_EQ(result.main_act, ActType::kI8);
  ASSERT_EQ(result.ops.size(), 4u);
  for (const OpTable& table : result.ops) {
    const double share = std::accumulate(table.lines.begin(), table.lines.end(), 0.0,
                                         [](double sum, const OpLine& l) { return sum + l.share; });
    EXPECT_NEAR(share, 1, 1e-9);
  }
  const boost::json::object json = model_json(result);
  EXPECT_EQ(json.at("rates").as_array().size(), 4u);
  EXPECT_EQ(json.at("ops").as_array().size(), 4u);
  const std::string text = format_model(result, false);
  EXPECT_NE(text.find("prefill 40"), std::string::npos);
  EXPECT_NE(text.find("mlp.down_proj"), std::string::npos);
}

TEST_F(ModelBenchTest, ImpossibleNumbersAreRefused) {
  ModelBenchOptions options = this->options();
  options.prefills = {testing::kTinyContext};  // and one token more
  EXPECT_THROW(bench_model(options), LoadError);
  options = this->options();
  options.batches = {0};
  EXPECT_THROW(bench_model(options), LoadError);
}

TEST_F(ModelBenchTest, CostsAreThoseOfTheWeightsAndPages) {
  LoadedProgramOptions options;
  options.llm.model = path_;
  const backend::Program program = count_program(options);
  const ProgramCost one = cost_of_step(program, {{{1, 33}}, 1});
  const ProgramCost two = cost_of_step(program, {{{1, 33}, {1, 33}}, 2});
  // Weights once, the pages of both: three pages of 16 tokens, 2 KV heads of 16, keys and values in
  // bf16, two layers; and a second row of the embedding, 64 codes of 4 bits and two scales, in two
  // blocks that have room for two each.
  const double pages = 3 * 16 * 2 * 16 * 2 * 2 * 2;
  EXPECT_EQ(two.bytes - one.bytes, pages + 40);
  EXPECT_EQ(two.operations, 2 * one.operations);
  EXPECT_EQ(one.main_act, ActType::kI8);
  // Everything at least once: a machine that reads a byte and computes an operation in a second
  // needs no less than either sum alone.
  backend::cpu::Ceilings slow;
  slow.read_gbs = 1e-9;
  slow.fp32_gflops = slow.bf16_gflops = slow.int8_gops = 1e-9;
  const auto costs = backend::dryrun::step_cost(program, {{{1, 33}}, 1});
  const double least = roofline_seconds(program, costs, 0, program.ops.size(), slow);
  EXPECT_GE(least, std::max(one.bytes, one.operations) * (1 - 1e-12));
  EXPECT_LE(least, one.bytes + one.operations);
}

TEST(PhaseName, LeavesLayersOutAndTellsAParentOnce) {
  EXPECT_EQ(phase_name({"layers.3.self_attn.q_proj", "layers.3.self_attn.k_proj"}),
            "self_attn.q_proj + k_proj");
  EXPECT_EQ(phase_name({"layers.0.self_attn.prepare", "layers.0.mlp.up_proj"}),
            "self_attn.prepare + mlp.up_proj");
  EXPECT_EQ(phase_name({"model.layers.12.mlp.down_proj"}), "mlp.down_proj");
  EXPECT_EQ(phase_name({"lm_head"}), "lm_head");
}

TEST(PeakOf, Bf16FallsBackToFp32) {
  backend::cpu::Ceilings ceilings;
  ceilings.fp32_gflops = 10;
  ceilings.int8_gops = 30;
  EXPECT_EQ(peak_of(ceilings, ActType::kBF16), 10);
  EXPECT_EQ(peak_of(ceilings, ActType::kI8), 30);
  ceilings.bf16_gflops = 20;
  EXPECT_EQ(peak_of(ceilings, ActType::kBF16), 20);
}

}  // namespace
}  // namespace quire::bench
