// Random blocks of every GGUF format through reader, packer and unpacking, against what
// tools/goldens/gguf_blocks.py makes of them, bit for bit.
#include <cstring>

#include <gtest/gtest.h>

#include "quire/backend/cpu/packer.h"
#include "quire/weights/weight_format.h"
#include "tests/golden/golden_file.h"

namespace quire::golden {
namespace {

class GgufBlocks : public ::testing::TestWithParam<DType> {
 protected:
  std::string name() const { return std::string(dtype_name(GetParam())); }

  /// Every row of `blocks` ([rows, bytes of a row]), as the packed weight holds it.
  std::vector<float> unpacked(const std::vector<std::byte>& blocks, int64_t rows) const {
    const int64_t in = static_cast<int64_t>(blocks.size()) / rows /
                       dtype_info(GetParam()).block_bytes * dtype_info(GetParam()).block_elements;
    const checkpoint::StoredTensor tensor = {.name = name(),
                                             .dtype = GetParam(),
                                             .shape = {rows, in},
                                             .bytes = blocks,
                                             .file = "blocks"};
    const auto reader = weights::make_weight_reader(tensor, weights::WeightDType::kAuto);
    const auto weight = backend::cpu::pack_weight(
        *reader, nullptr, [](int64_t count, const std::function<void(int64_t)>& fn) {
          for (int64_t i = 0; i < count; ++i) fn(i);
        });
    std::vector<float> values(static_cast<size_t>(rows * in));
    for (int64_t r = 0; r < rows; ++r) backend::unpack_row(*weight, r, values.data() + r * in);
    return values;
  }

  GoldenFile golden_{"gguf_blocks.safetensors"};
};

TEST_P(GgufBlocks, UnpackToTheReferencesBits) {
  const std::vector<std::byte> blocks = golden_.bytes(name() + ".blocks");
  const std::vector<float> want = golden_.floats(name() + ".values");
  const std::vector<float> got = unpacked(blocks, 3);
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < want.size(); ++i) {
    ASSERT_EQ(0, std::memcmp(&got[i], &want[i], sizeof(float)))
        << "value " << i << " is " << got[i] << ", not " << want[i];
  }
}

// What a reader does not look at, this finds: in a block whose fp16 numbers are 1 and whose scales
// are not 0, every bit changes a value.
TEST_P(GgufBlocks, EveryBitOfABlockCounts) {
  std::vector<std::byte> blocks = golden_.bytes(name() + ".tame");
  const std::vector<float> whole = unpacked(blocks, 1);
  for (std::byte& byte : blocks) {
    for (int bit = 0; bit < 8; ++bit) {
      byte ^= std::byte{1} << bit;
      const std::vector<float> changed = unpacked(blocks, 1);
      EXPECT_NE(0, std::memcmp(changed.data(), whole.data(), whole.size() * sizeof(float)))
          << "bit " << bit << " of byte " << &byte - blocks.data();
      byte ^= std::byte{1} << bit;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, GgufBlocks,
                         ::testing::Values(DType::kQ4_0, DType::kQ4_1, DType::kQ5_0, DType::kQ5_1,
                                           DType::kQ8_0, DType::kQ2_K, DType::kQ3_K, DType::kQ4_K,
                                           DType::kQ5_K, DType::kQ6_K),
                         [](const auto& tested) { return std::string(dtype_name(tested.param)); });

}  // namespace
}  // namespace quire::golden
