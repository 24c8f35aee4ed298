// A dry run records the program the CPU runs, and counts the bytes the CPU takes for it.
#include <gtest/gtest.h>

#include "quire/backend/cpu/cpu_backend.h"
#include "quire/backend/dryrun/dryrun_backend.h"
#include "quire/models/program_recorder.h"
#include "quire/models/registry.h"
#include "quire/weights/testing/memory_source.h"
#include "tests/golden/tiny_model.h"

namespace quire::golden {
namespace {

using backend::Program;

class DryRun : public ::testing::TestWithParam<TinyModel> {
 protected:
  DryRun() {
    for (const auto& [name, tensor] : make_tensors(GetParam())) {
      source_.add(name, tensor.shape, tensor.values);
    }
  }
  Program record(backend::Backend& backend) {
    const auto model =
        models::load_model(GetParam().config, weights::WeightScope(source_, backend, options_));
    return models::record_program(*model, {.max_tokens = 128,
                                           .max_logits = 64,
                                           .cache_groups = model->cache_groups(DType::kBF16, 16)});
  }

  weights::testing::MemorySource source_;
  weights::LoadOptions options_ = {.dtype = weights::WeightDType::kBFloat16};
};

TEST_P(DryRun, CountsWhatTheCpuTakes) {
  backend::cpu::CpuBackend::Options cpu_options;
  cpu_options.num_threads = 1;
  backend::cpu::CpuBackend cpu(cpu_options);
  backend::dryrun::DryRunBackend dry(
      {.preferred_activation = [&](const auto& spec) { return cpu.preferred_activation(spec); },
       .unsupported = {}});
  const Program counted = record(dry);
  EXPECT_TRUE(source_.released().empty()) << "a dry run reads no weight";
  const Program run = record(cpu);

  ASSERT_EQ(counted.ops.size(), run.ops.size());
  for (size_t i = 0; i < run.ops.size(); ++i) {
    EXPECT_EQ(counted.ops[i].name, run.ops[i].name);
    EXPECT_EQ(counted.ops[i].kind, run.ops[i].kind);
  }
  const auto memory = backend::dryrun::count_memory(counted);
  int64_t packed = 0;
  for (const auto& weight : run.weights) packed += weight->data.size();
  EXPECT_EQ(memory.weight_bytes(), packed);
  EXPECT_EQ(memory.arena_bytes, run.arena_bytes);
  EXPECT_EQ(memory.weight_bytes() + memory.vector_bytes, run.weight_bytes());
}

INSTANTIATE_TEST_SUITE_P(Tiny, DryRun, ::testing::ValuesIn(tiny_models()),
                         [](const auto& tested) { return tested.param.name; });

}  // namespace
}  // namespace quire::golden
