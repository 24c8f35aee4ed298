// Small Llamas in GGUF files of every weight format and of mixtures: the logits must be those of
// the same weights given as F32.
#include <cmath>
#include <cstring>
#include <functional>
#include <map>
#include <random>

#include <gtest/gtest.h>

#include "quire/checkpoint/checkpoint.h"
#include "quire/checkpoint/testing/gguf_writer.h"
#include "quire/checkpoint/testing/temp_folder.h"
#include "quire/weights/testing/memory_source.h"
#include "quire/weights/weight_format.h"
#include "tests/golden/golden_backends.h"
#include "tests/golden/prompt_session.h"

namespace quire::golden {
namespace {

using checkpoint::Checkpoint;
using checkpoint::StoredTensor;
using weights::ActivationDType;
using weights::testing::MemorySource;

constexpr int64_t kHidden = 256;
constexpr int64_t kIntermediate = 512;
constexpr int64_t kVocab = 160;
constexpr int64_t kLayers = 2;

/// Which format a tensor has, by its GGUF name.
using FormatOf = std::function<DType(const std::string& name)>;

/// Where a block holds fp16 numbers, and what makes of random codes weights of about unit size
/// around 0.
struct BlockScales {
  int64_t scale_at;
  float scale;
  int64_t min_at;  // -1: none
  float min;
};

BlockScales block_scales(DType type) {
  switch (type) {
    case DType::kQ4_0:
      return {0, 0.22f, -1, 0};
    case DType::kQ4_1:
      return {0, 0.22f, 2, -1.6f};
    case DType::kQ5_0:
      return {0, 0.11f, -1, 0};
    case DType::kQ5_1:
      return {0, 0.11f, 2, -1.7f};
    case DType::kQ8_0:
      return {0, 0.014f, -1, 0};
    case DType::kQ2_K:
      return {80, 0.09f, 82, 0.13f};
    case DType::kQ3_K:
      return {108, 0.023f, -1, 0};
    case DType::kQ4_K:
      return {0, 0.005f, 2, 0.037f};
    case DType::kQ5_K:
      return {0, 0.0025f, 2, 0.037f};
    default:
      return {208, 0.0007f, -1, 0};
  }
}

/// Random blocks: weights of standard deviation about `size`.
std::vector<std::byte> random_weights(DType type, int64_t count, float size, std::mt19937& random) {
  std::vector<std::byte> bytes(static_cast<size_t>(row_bytes(type, count)));
  const auto put_half = [&](size_t at, float value) {
    const uint16_t bits = f32_to_f16(value);
    std::memcpy(bytes.data() + at, &bits, 2);
  };
  std::uniform_real_distribution<float> around(0.7f, 1.3f);
  if (!is_block_quantized(type)) {
    std::normal_distribution<float> normal(0, size);
    for (size_t at = 0; at < bytes.size(); at += bytes.size() / static_cast<size_t>(count)) {
      const float value = normal(random);
      if (type == DType::kF16) put_half(at, value);
      if (type == DType::kF32) std::memcpy(bytes.data() + at, &value, 4);
    }
    return bytes;
  }
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random() & 0xff);
  const BlockScales scales = block_scales(type);
  const auto block = static_cast<size_t>(dtype_info(type).block_bytes);
  for (size_t at = 0; at < bytes.size(); at += block) {
    const float factor = around(random) * size;
    put_half(at + static_cast<size_t>(scales.scale_at), scales.scale * factor);
    if (scales.min_at >= 0) put_half(at + static_cast<size_t>(scales.min_at), scales.min * factor);
  }
  return bytes;
}

/// A file of architecture "llama" without a tokenizer.
void write_gguf(const std::string& path, const FormatOf& format_of) {
  checkpoint::testing::GgufWriter writer;
  writer.set_string("general.architecture", "llama")
      .set_u32("llama.block_count", kLayers)
      .set_u32("llama.context_length", 128)
      .set_u32("llama.embedding_length", kHidden)
      .set_u32("llama.feed_forward_length", kIntermediate)
      .set_u32("llama.attention.head_count", 4)
      .set_u32("llama.attention.head_count_kv", 2)
      .set_u32("llama.vocab_size", kVocab)
      .set_f32("llama.attention.layer_norm_rms_epsilon", 0.02f)
      .set_f32("llama.rope.freq_base", 10000.0f);
  std::mt19937 random(11);
  const auto matrix = [&](const std::string& name, int64_t out, int64_t in, float size) {
    const DType type = format_of(name);
    writer.add_tensor(name, type, {out, in}, random_weights(type, out * in, size, random));
  };
  const auto norm = [&](const std::string& name) {
    std::uniform_real_distribution<float> around(0.5f, 1.5f);
    std::vector<float> values;
    for (int64_t i = 0; i < kHidden; ++i) values.push_back(around(random));
    writer.add_f32(name, {kHidden}, values);
  };
  const float by_hidden = 1 / std::sqrt(static_cast<float>(kHidden));
  matrix("token_embd.weight", kVocab, kHidden, 0.3f);
  matrix("output.weight", kVocab, kHidden, 3 * by_hidden);
  norm("output_norm.weight");
  for (int64_t i = 0; i < kLayers; ++i) {
    const std::string layer = "blk." + std::to_string(i) + ".";
    norm(layer + "attn_norm.weight");
    norm(layer + "ffn_norm.weight");
    matrix(layer + "attn_q.weight", kHidden, kHidden, 1.4f * by_hidden);
    matrix(layer + "attn_k.weight", kHidden / 2, kHidden, 1.4f * by_hidden);
    matrix(layer + "attn_v.weight", kHidden / 2, kHidden, by_hidden);
    matrix(layer + "attn_output.weight", kHidden, kHidden, by_hidden);
    matrix(layer + "ffn_gate.weight", kIntermediate, kHidden, by_hidden);
    matrix(layer + "ffn_up.weight", kIntermediate, kHidden, by_hidden);
    matrix(layer + "ffn_down.weight", kHidden, kIntermediate, by_hidden);
  }
  writer.write(path);
}

/// The same tensors as F32, rows in the order in which they are stored. `fault` may change a
/// block-quantized tensor's bytes first.
MemorySource as_dense(const Checkpoint& from,
                      const std::function<void(DType, std::vector<std::byte>&)>& fault = {}) {
  MemorySource dense;
  dense.set_interleaved(from.tensors->rope_rows_interleaved());
  for (const std::string& name : from.tensors->names()) {
    StoredTensor tensor = *from.tensors->find(name);
    std::vector<std::byte> bytes(tensor.bytes.begin(), tensor.bytes.end());
    if (tensor.shape.size() != 2) {
      dense.add(name, tensor.dtype, tensor.shape, bytes);
      continue;
    }
    if (fault && is_block_quantized(tensor.dtype)) fault(tensor.dtype, bytes);
    tensor.bytes = bytes;
    const auto reader = weights::make_weight_reader(tensor, weights::WeightDType::kFloat32);
    backend::WeightRows rows;
    reader->read(0, tensor.rows(), rows);
    std::vector<float> values(static_cast<size_t>(tensor.rows() * tensor.cols()));
    for (int64_t r = 0; r < tensor.rows(); ++r) {
      backend::decode_row(reader->spec(), rows, r, values.data() + r * tensor.cols());
    }
    dense.add(name, tensor.shape, values);
  }
  return dense;
}

std::vector<float> logits_of(const checkpoint::TensorSource& tensors, const Checkpoint& checkpoint,
                             ActivationDType activation,
                             const std::unique_ptr<backend::Backend>& backend = best_backend()) {
  PromptSession session(*backend, tensors, checkpoint.config, {.load = {.activation = activation}});
  std::vector<int32_t> ids;
  for (int32_t i = 0; i < 40; ++i) ids.push_back(i * 37 % static_cast<int32_t>(kVocab));
  std::vector<float> logits;
  const std::vector<int32_t> positions = {0, 15, 16, 31, 39};
  for (const auto& row : session.run(ids, positions, 16)) {
    logits.insert(logits.end(), row.begin(), row.end());
  }
  return logits;
}

/// Root mean square.
double size_of(const std::vector<float>& values) {
  double square = 0;
  for (const float value : values) square += double{value} * value;
  return std::sqrt(square / static_cast<double>(values.size()));
}

/// Of the difference, relative to `want`.
double error(const std::vector<float>& got, const std::vector<float>& want) {
  std::vector<float> difference;
  for (size_t i = 0; i < want.size(); ++i) difference.push_back(got[i] - want[i]);
  return size_of(difference) / size_of(want);
}

struct Mixture {
  std::string name;
  FormatOf format_of;
};
void PrintTo(const Mixture& shown, std::ostream* out) {
  *out << shown.name;
}

bool holds(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

std::vector<Mixture> mixtures() {
  std::vector<Mixture> all;
  for (const DType type :
       {DType::kF16, DType::kQ4_0, DType::kQ4_1, DType::kQ5_0, DType::kQ5_1, DType::kQ8_0,
        DType::kQ2_K, DType::kQ3_K, DType::kQ4_K, DType::kQ5_K, DType::kQ6_K}) {
    all.push_back({std::string(dtype_name(type)), [type](const std::string&) { return type; }});
  }
  // What quantizers call Q4_K_M: some layers' values and down projections and the head in six bits.
  all.push_back({"Q4_K_M", [](const std::string& name) {
                   const bool wide = holds(name, "attn_v") || holds(name, "ffn_down");
                   const bool six = name == "output.weight" || (wide && holds(name, "blk.1."));
                   return six ? DType::kQ6_K : DType::kQ4_K;
                 }});
  // Rows that are no whole super-blocks fall back to blocks of 32.
  all.push_back({"fallbacks", [](const std::string& name) {
                   if (holds(name, "attn_q")) return DType::kQ5_0;
                   if (holds(name, "attn_k")) return DType::kQ8_0;
                   if (holds(name, "attn_v")) return DType::kQ5_1;
                   if (holds(name, "token_embd")) return DType::kF16;
                   return holds(name, "gate") ? DType::kQ3_K : DType::kQ5_K;
                 }});
  return all;
}

class GgufModel : public ::testing::TestWithParam<Mixture> {
 protected:
  GgufModel() {
    const std::string path = folder_.file("model.gguf");
    write_gguf(path, GetParam().format_of);
    checkpoint_ = checkpoint::open_checkpoint(path);
  }

  checkpoint::testing::TempFolder folder_;
  Checkpoint checkpoint_;
};

// The weights are the same numbers and the sums have the same order: not a bit may differ.
TEST_P(GgufModel, IsTheSameWeightsInF32) {
  const MemorySource dense = as_dense(checkpoint_);
  for (const GoldenBackend& backend : golden_backends()) {
    const auto want = logits_of(dense, checkpoint_, ActivationDType::kF32, backend.make());
    const auto got =
        logits_of(*checkpoint_.tensors, checkpoint_, ActivationDType::kF32, backend.make());
    ASSERT_EQ(got.size(), want.size());
    EXPECT_EQ(0, std::memcmp(got.data(), want.data(), got.size() * sizeof(float)))
        << backend.name << ": relative error " << error(got, want);
    EXPECT_GT(size_of(want), 1.0);  // the test means something
  }
}

TEST_P(GgufModel, NarrowActivationsRoundNoMoreThanTheyShould) {
  const MemorySource dense = as_dense(checkpoint_);
  const auto want = logits_of(dense, checkpoint_, ActivationDType::kF32);
  EXPECT_LT(error(logits_of(*checkpoint_.tensors, checkpoint_, ActivationDType::kBF16), want),
            0.01);
  EXPECT_LT(error(logits_of(*checkpoint_.tensors, checkpoint_, ActivationDType::kI8), want), 0.03);
}

INSTANTIATE_TEST_SUITE_P(All, GgufModel, ::testing::ValuesIn(mixtures()),
                         [](const auto& tested) { return tested.param.name; });

std::vector<Mixture> mixtures_of_super_blocks() {
  std::vector<Mixture> some = mixtures();
  std::erase_if(some, [](const Mixture& mixture) { return !holds(mixture.name, "_K"); });
  return some;
}

class SuperBlockModel : public GgufModel {};

/// Swaps the scales of groups 0 and 1 in every block of the K-quants.
void swap_group_scales(DType type, std::vector<std::byte>& bytes) {
  const std::map<DType, size_t> first_scale = {{DType::kQ2_K, 0},
                                               {DType::kQ3_K, 96},
                                               {DType::kQ4_K, 4},
                                               {DType::kQ5_K, 4},
                                               {DType::kQ6_K, 192}};
  const auto place = first_scale.find(type);
  if (place == first_scale.end()) return;
  const auto block = static_cast<size_t>(dtype_info(type).block_bytes);
  for (size_t at = place->second; at < bytes.size(); at += block) {
    std::swap(bytes[at], bytes[at + 1]);
  }
}

// What the tests above would see of a reader that mixes up groups.
TEST_P(SuperBlockModel, ScalesInAnotherOrderShow) {
  const MemorySource dense = as_dense(checkpoint_);
  const MemorySource wrong = as_dense(checkpoint_, swap_group_scales);
  const auto want = logits_of(dense, checkpoint_, ActivationDType::kF32);
  EXPECT_GT(error(logits_of(wrong, checkpoint_, ActivationDType::kF32), want), 0.1);
}

INSTANTIATE_TEST_SUITE_P(All, SuperBlockModel, ::testing::ValuesIn(mixtures_of_super_blocks()),
                         [](const auto& tested) { return tested.param.name; });

}  // namespace
}  // namespace quire::golden
