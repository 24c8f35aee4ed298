// Tiny Llamas against transformers' logits (tools/goldens), and faults planted to show that the
// tolerance catches them.
#include <cmath>
#include <functional>
#include <limits>

#include <gtest/gtest.h>

#include "quire/checkpoint/checkpoint.h"
#include "quire/checkpoint/testing/temp_folder.h"
#include "quire/weights/testing/memory_source.h"
#include "tests/golden/golden_backends.h"
#include "tests/golden/golden_file.h"
#include "tests/golden/prompt_session.h"
#include "tests/golden/tiny_model.h"

namespace quire::golden {
namespace {

using checkpoint::ModelConfig;
using checkpoint::RopeScaling;
using weights::testing::MemorySource;

constexpr double kTolerance = 1e-4;
constexpr double kFault = 100 * kTolerance;

/// Largest difference over the largest magnitude. NaN counts as infinitely far.
double relative_error(const std::vector<std::vector<float>>& got, const std::vector<float>& want) {
  double difference = 0;
  double magnitude = 0;
  size_t i = 0;
  for (const auto& row : got) {
    for (const float value : row) {
      const double d = std::fabs(double{value} - want.at(i));
      difference =
          std::isnan(d) ? std::numeric_limits<double>::infinity() : std::max(difference, d);
      magnitude = std::max(magnitude, std::fabs(double{want[i++]}));
    }
  }
  return i == want.size() ? difference / magnitude : std::numeric_limits<double>::infinity();
}

using Case = std::tuple<GoldenBackend, TinyModel>;

class LlamaGolden : public ::testing::TestWithParam<Case> {
 protected:
  LlamaGolden()
      : golden_("llama.safetensors"),
        ids_(golden_.ints(tiny().name + ".ids")),
        positions_(golden_.ints(tiny().name + ".positions")),
        logits_(golden_.floats(tiny().name + ".logits")) {
    write_folder(tiny(), folder_.path());
    checkpoint_ = checkpoint::open_checkpoint(folder_.path());
  }

  static const TinyModel& tiny() { return std::get<TinyModel>(GetParam()); }

  /// A copy of the checkpoint's tensors that a test may spoil.
  MemorySource copy() const {
    MemorySource source;
    for (const std::string& name : checkpoint_.tensors->names()) {
      const auto& t = *checkpoint_.tensors->find(name);
      source.add(name, t.dtype, t.shape, {t.bytes.begin(), t.bytes.end()});
    }
    return source;
  }

  std::vector<std::vector<float>> run(const checkpoint::TensorSource& tensors,
                                      const ModelConfig& config, int64_t chunk = 64,
                                      int32_t block_tokens = 16) const {
    const auto backend = std::get<GoldenBackend>(GetParam()).make();
    PromptSession session(*backend, tensors, config,
                          {.load = {.dtype = weights::WeightDType::kFloat32,
                                    .activation = weights::ActivationDType::kF32},
                           .block_tokens = block_tokens});
    return session.run(ids_, positions_, chunk);
  }
  double error(const checkpoint::TensorSource& tensors, const ModelConfig& config) const {
    return relative_error(run(tensors, config), logits_);
  }

  GoldenFile golden_;
  std::vector<int32_t> ids_;
  std::vector<int32_t> positions_;
  std::vector<float> logits_;
  checkpoint::testing::TempFolder folder_;
  checkpoint::Checkpoint checkpoint_;
};

/// Reorders the rows of a stored matrix or vector: new row r is old row `from(r)`.
void reorder_rows(MemorySource& source, const std::string& name,
                  const std::function<int64_t(int64_t)>& from) {
  const checkpoint::StoredTensor tensor = *source.find(name);
  const int64_t size = static_cast<int64_t>(tensor.bytes.size()) / tensor.shape[0];
  std::vector<std::byte> bytes;
  for (int64_t r = 0; r < tensor.shape[0]; ++r) {
    const auto row =
        tensor.bytes.subspan(static_cast<size_t>(from(r) * size), static_cast<size_t>(size));
    bytes.insert(bytes.end(), row.begin(), row.end());
  }
  source.add(name, tensor.dtype, tensor.shape, std::move(bytes));
}

TEST_P(LlamaGolden, WeightsAreTheOnesTheReferenceUsed) {
  EXPECT_EQ(checksum(make_tensors(tiny())), golden_.number(tiny().name + ".checksum"));
}

TEST_P(LlamaGolden, LogitsEqualTheReference) {
  EXPECT_LE(error(*checkpoint_.tensors, checkpoint_.config), kTolerance);
}

TEST_P(LlamaGolden, ChunksAndBlockSizesChangeNothing) {
  const auto whole = run(*checkpoint_.tensors, checkpoint_.config);
  for (const int64_t chunk : {1, 7, 16}) {
    EXPECT_EQ(run(*checkpoint_.tensors, checkpoint_.config, chunk, 16), whole) << chunk;
  }
  EXPECT_EQ(run(*checkpoint_.tensors, checkpoint_.config, 64, 32), whole);
}

TEST_P(LlamaGolden, InterleavedRowsAreTheSameModel) {
  MemorySource source = copy();
  const int64_t head_dim = checkpoint_.config.head_dim;
  // As GGUF files of architecture llama store q and k: new row [head][i][half].
  const auto from = [head_dim](int64_t row) {
    const int64_t in_head = row % head_dim;
    return row - in_head + in_head % 2 * (head_dim / 2) + in_head / 2;
  };
  for (const std::string& name : source.names()) {
    const bool q_or_k =
        name.find("q_proj") != std::string::npos || name.find("k_proj") != std::string::npos;
    if (q_or_k) reorder_rows(source, name, from);
  }
  EXPECT_GE(error(source, checkpoint_.config), kFault) << "the order must matter";
  source.set_interleaved(true);
  EXPECT_EQ(run(source, checkpoint_.config), run(*checkpoint_.tensors, checkpoint_.config));
}

TEST_P(LlamaGolden, RopeOffIsSeen) {
  ModelConfig config = checkpoint_.config;
  config.rope_scaling.kind = RopeScaling::Kind::kDivisors;
  config.rope_scaling.divisors.assign(static_cast<size_t>(config.head_dim / 2), INFINITY);
  EXPECT_GE(error(*checkpoint_.tensors, config), kFault);
}

TEST_P(LlamaGolden, AWrongNormEpsilonIsSeen) {
  ModelConfig config = checkpoint_.config;
  config.rms_norm_eps = 1e-6;
  EXPECT_GE(error(*checkpoint_.tensors, config), kFault);
}

TEST_P(LlamaGolden, SwappedHeadsAreSeen) {
  MemorySource source = copy();
  const int64_t head_dim = checkpoint_.config.head_dim;
  reorder_rows(source, "model.layers.0.self_attn.q_proj.weight", [head_dim](int64_t row) {
    if (row < head_dim) return row + head_dim;
    return row < 2 * head_dim ? row - head_dim : row;
  });
  EXPECT_GE(error(source, checkpoint_.config), kFault);
}

std::string case_name(const ::testing::TestParamInfo<Case>& tested) {
  return std::get<GoldenBackend>(tested.param).name + "_" + std::get<TinyModel>(tested.param).name;
}

INSTANTIATE_TEST_SUITE_P(Tiny, LlamaGolden,
                         ::testing::Combine(::testing::ValuesIn(golden_backends()),
                                            ::testing::ValuesIn(tiny_models())),
                         case_name);

/// The variants with a rotary scaling.
class ScaledRopeGolden : public LlamaGolden {};

TEST_P(ScaledRopeGolden, MissingScalingIsSeen) {
  ModelConfig config = checkpoint_.config;
  config.rope_scaling.kind = RopeScaling::Kind::kNone;
  EXPECT_GE(error(*checkpoint_.tensors, config), kFault);
}

std::vector<TinyModel> scaled_models() {
  std::vector<TinyModel> models = tiny_models();
  std::erase_if(models, [](const TinyModel& model) {
    return model.config.rope_scaling.kind == RopeScaling::Kind::kNone;
  });
  return models;
}

INSTANTIATE_TEST_SUITE_P(Tiny, ScaledRopeGolden,
                         ::testing::Combine(::testing::ValuesIn(golden_backends()),
                                            ::testing::ValuesIn(scaled_models())),
                         case_name);

}  // namespace
}  // namespace quire::golden
