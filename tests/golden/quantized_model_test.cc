// Tiny Llamas stored in each quantized format: every CPU level against the plain reference, which
// expands codes by their definition.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <tuple>

#include <gtest/gtest.h>

#include "quire/weights/testing/memory_source.h"
#include "tests/golden/golden_backends.h"
#include "tests/golden/prompt_session.h"
#include "tests/golden/reference_backend.h"
#include "tests/golden/tiny_model.h"

namespace quire::golden {
namespace {

using weights::ActivationDType;
using weights::testing::MemorySource;

/// Appends one block of 32 numbers, rounded to the nearest code of the format.
void append_block(DType type, const float* x, std::vector<std::byte>& out) {
  const auto put16 = [&](uint16_t bits) {
    out.push_back(static_cast<std::byte>(bits & 0xff));
    out.push_back(static_cast<std::byte>(bits >> 8));
  };
  const auto [low, high] = std::minmax_element(x, x + 32);
  const float largest = std::max(std::fabs(*low), std::fabs(*high));
  const float step = type == DType::kQ4_1   ? (*high - *low) / 15
                     : type == DType::kQ4_0 ? largest / 7
                                            : largest / 127;
  const uint16_t scale_bits = f32_to_f16(step);
  const uint16_t min_bits = f32_to_f16(*low);
  const float scale = f16_to_f32(scale_bits);
  put16(scale_bits);
  if (type == DType::kQ4_1) put16(min_bits);
  const auto code = [&](int i) {
    if (type == DType::kQ8_0) return std::clamp(std::lround(x[i] / scale), -127L, 127L);
    if (type == DType::kQ4_0) return std::clamp(std::lround(x[i] / scale) + 8, 0L, 15L);
    return std::clamp(std::lround((x[i] - f16_to_f32(min_bits)) / scale), 0L, 15L);
  };
  for (int i = 0; i < (type == DType::kQ8_0 ? 32 : 16); ++i) {
    const long byte = type == DType::kQ8_0 ? code(i) : code(i) | code(i + 16) << 4;
    out.push_back(static_cast<std::byte>(byte & 0xff));
  }
}

std::vector<std::byte> stored_as(DType type, const std::vector<float>& values) {
  std::vector<std::byte> bytes;
  if (is_block_quantized(type)) {
    for (size_t i = 0; i < values.size(); i += 32) append_block(type, values.data() + i, bytes);
    return bytes;
  }
  for (const float value : values) {
    const uint16_t bits = type == DType::kF16 ? f32_to_f16(value) : f32_to_bf16(value);
    bytes.push_back(static_cast<std::byte>(bits & 0xff));
    bytes.push_back(static_cast<std::byte>(bits >> 8));
  }
  return bytes;
}

TinyModel tied_model() {
  for (TinyModel& model : tiny_models()) {
    if (model.name == "tied_fp32") return model;
  }
  ADD_FAILURE() << "tied_fp32 is gone";
  return {};
}

class QuantizedModel : public ::testing::TestWithParam<std::tuple<GoldenBackend, DType>> {
 protected:
  QuantizedModel() : model_(tied_model()) {
    for (const auto& [name, tensor] : make_tensors(model_)) {
      if (tensor.shape.size() == 2) {
        source_.add(name, stored_type(), tensor.shape, stored_as(stored_type(), tensor.values));
      } else {
        source_.add(name, tensor.shape, tensor.values);
      }
    }
    for (int32_t i = 0; i < 40; ++i) ids_.push_back(i * 37 % 160);
  }
  static DType stored_type() { return std::get<DType>(GetParam()); }

  std::vector<float> run(backend::Backend& backend, ActivationDType activation, DType kv_dtype) {
    PromptSession session(backend, source_, model_.config,
                          {.load = {.activation = activation}, .kv_dtype = kv_dtype});
    std::vector<float> logits;
    for (const auto& row : session.run(ids_, positions_, 16)) {
      logits.insert(logits.end(), row.begin(), row.end());
    }
    return logits;
  }
  /// Root mean square of the difference to the reference, over that of the reference.
  double error(ActivationDType activation, DType kv_dtype) {
    ReferenceBackend reference;
    const auto backend = std::get<GoldenBackend>(GetParam()).make();
    const auto want = run(reference, activation, kv_dtype);
    const auto got = run(*backend, activation, kv_dtype);
    if (got.size() != want.size()) return std::numeric_limits<double>::infinity();
    double difference = 0;
    double magnitude = 0;
    for (size_t i = 0; i < want.size(); ++i) {
      difference += std::pow(double{got[i]} - want[i], 2);
      magnitude += std::pow(double{want[i]}, 2);
    }
    return std::sqrt(difference / magnitude);
  }

  TinyModel model_;
  MemorySource source_;
  std::vector<int32_t> ids_;
  std::vector<int32_t> positions_ = {0, 15, 16, 31, 39};
};

TEST_P(QuantizedModel, Fp32ActivationsEqualTheReference) {
  EXPECT_LE(error(ActivationDType::kF32, DType::kF32), 1e-5);
}

// A value halfway between two bf16 or int8 numbers may fall to either side where sums differ in
// their last bit; such a flip moves the logits by thousandths, a wrong scale or code by far more.
TEST_P(QuantizedModel, NarrowActivationsAreTheReferences) {
  EXPECT_LE(error(ActivationDType::kBF16, DType::kF32), 4e-3);
  EXPECT_LE(error(ActivationDType::kI8, DType::kF32), 4e-3);
}

// Beside what is stored, a level may round queries and attention weights to bf16.
TEST_P(QuantizedModel, Bf16KvStaysCloseToTheReference) {
  EXPECT_LE(error(ActivationDType::kF32, DType::kBF16), 2e-2);
}

INSTANTIATE_TEST_SUITE_P(Tiny, QuantizedModel,
                         ::testing::Combine(::testing::ValuesIn(golden_backends()),
                                            ::testing::Values(DType::kF16, DType::kBF16,
                                                              DType::kQ4_0, DType::kQ4_1,
                                                              DType::kQ8_0)),
                         [](const auto& tested) {
                           return std::get<GoldenBackend>(tested.param).name + "_" +
                                  std::string(dtype_name(std::get<DType>(tested.param)));
                         });

}  // namespace
}  // namespace quire::golden
