#include "quire/checkpoint/gguf_file.h"

#include <cstring>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "quire/checkpoint/gguf_source.h"
#include "quire/checkpoint/testing/gguf_writer.h"
#include "quire/checkpoint/testing/little_endian.h"
#include "quire/checkpoint/testing/load_error_of.h"
#include "quire/checkpoint/testing/small_llama.h"

namespace quire::checkpoint {
namespace {

using testing::GgufWriter;
using ::testing::HasSubstr;
using testing::little_endian;
using testing::load_error_of;

std::string error_of(const std::vector<std::byte>& bytes) {
  return load_error_of([&] { GgufFile(bytes, "m.gguf"); });
}
std::string error_of(const GgufWriter& writer) {
  return error_of(writer.bytes());
}

const std::vector<std::byte> kFourFloats(16);

TEST(GgufFile, ReadsWhatWasWritten) {
  GgufWriter writer;
  writer.set_u32("a.u32", 7)
      .set_u64("a.u64", uint64_t{1} << 40)
      .set_f32("a.f32", 0.5f)
      .set_bool("a.bool", true)
      .set_string("a.string", "text")
      .set_strings("a.strings", {"x", "", "yz"})
      .set_i32s("a.ints", {1, -2, 3})
      .add_f32("b", {2, 3}, {1, 2, 3, 4, 5, 6})
      .add_tensor("a", DType::kQ8_0, {1, 64}, std::vector<std::byte>(68, std::byte{9}));
  for (const uint32_t version : {2u, 3u}) {
    const auto bytes = writer.set_version(version).bytes();
    const GgufFile file(bytes, "m.gguf");
    const GgufMetadata& metadata = file.metadata();
    EXPECT_EQ(metadata.integer("a.u32", 0, 7), 7);
    EXPECT_EQ(metadata.integer("a.u64", 0, int64_t{1} << 50), int64_t{1} << 40);
    EXPECT_EQ(metadata.number("a.f32"), 0.5);
    EXPECT_EQ(metadata.boolean("a.bool"), true);
    EXPECT_EQ(metadata.string("a.string"), "text");
    EXPECT_EQ(metadata.strings("a.strings", 3), (std::vector<std::string>{"x", "", "yz"}));
    EXPECT_EQ(metadata.integers("a.ints", 3), (std::vector<int32_t>{1, -2, 3}));
    EXPECT_EQ(metadata.integer("absent", 0, 1), std::nullopt);
    ASSERT_EQ(file.tensors().size(), 2u);
    const GgufTensor* b = file.find("b");
    ASSERT_NE(b, nullptr);
    EXPECT_EQ(b->dims[0], 3u);
    EXPECT_EQ(b->dims[1], 2u);
    float values[6];
    ASSERT_EQ(b->bytes.size(), sizeof(values));
    std::memcpy(values, b->bytes.data(), sizeof(values));
    EXPECT_EQ(values[5], 6.0f);
    EXPECT_EQ(file.find("a")->bytes.size(), 68u);
    EXPECT_EQ(file.find("a")->bytes[67], std::byte{9});
  }
}

TEST(GgufFile, RefusesOtherFilesAndVersions) {
  EXPECT_EQ(error_of(testing::to_bytes("PK\3\4 and so on, long enough")),
            "m.gguf: magic: expected GGUF, found PK\\x03\\x04");
  EXPECT_THAT(error_of(testing::to_bytes("GG")), HasSubstr("magic: expected 4 bytes"));
  EXPECT_EQ(error_of(GgufWriter().set_version(1)),
            "m.gguf: version: expected 2 or 3, little-endian, found 1");
  EXPECT_THAT(error_of(GgufWriter().set_version(0x03000000u)), HasSubstr("a big-endian file"));
}

TEST(GgufFile, EveryCutIsAnError) {
  const auto whole = testing::small_llama_gguf().bytes();
  for (size_t size = 0; size < whole.size(); ++size) {
    const std::vector<std::byte> cut(whole.begin(), whole.begin() + static_cast<ptrdiff_t>(size));
    EXPECT_NE(error_of(cut), "no error") << size;
  }
  EXPECT_EQ(error_of(whole), "no error");
}

TEST(GgufFile, CountsBeyondTheFileAreRefused) {
  auto bytes = GgufWriter().set_u32("k", 1).bytes();
  const uint64_t huge = uint64_t{1} << 60;
  auto tensors = bytes;
  std::memcpy(tensors.data() + 8, &huge, sizeof(huge));
  EXPECT_THAT(error_of(tensors), HasSubstr("tensor count: expected 1152921504606846976 tensors"));
  auto pairs = bytes;
  std::memcpy(pairs.data() + 16, &huge, sizeof(huge));
  EXPECT_THAT(error_of(pairs), HasSubstr("metadata count: expected 1152921504606846976 pairs"));
  auto key = bytes;
  std::memcpy(key.data() + 24, &huge, sizeof(huge));
  EXPECT_THAT(error_of(key), HasSubstr("metadata key 0: expected 1152921504606846976 bytes"));
  const std::string array = little_endian(uint32_t{8}) + little_endian(uint64_t{1} << 61);
  EXPECT_THAT(error_of(GgufWriter().set_raw("list", 9, array)),
              HasSubstr("list: expected an array of 2305843009213693952 elements"));
  EXPECT_THAT(error_of(GgufWriter().set_raw("text", 8, little_endian(huge))),
              HasSubstr("text: expected 1152921504606846976 bytes"));
}

TEST(GgufFile, MetadataIsStrict) {
  EXPECT_EQ(error_of(GgufWriter().set_u32("k", 1).set_bool("k", true)),
            "m.gguf: k: expected one value, found two");
  EXPECT_THAT(error_of(GgufWriter().set_raw("k", 13, "xxxx")),
              HasSubstr("k: expected a value type"));
  std::string nested = little_endian(uint32_t{0}) + little_endian(uint64_t{0});
  for (int depth = 0; depth < 3; ++depth) {
    nested.insert(0, little_endian(uint32_t{9}).append(little_endian(uint64_t{1})));
  }
  EXPECT_THAT(error_of(GgufWriter().set_raw("deep", 9, nested)),
              HasSubstr("deep: expected arrays"));
  EXPECT_EQ(error_of(GgufWriter().set_raw("deep", 9, nested.substr(12))), "no error");
}

TEST(GgufMetadata, TypesAndRangesAreNamed) {
  const auto bytes = GgufWriter()
                         .set_u64("big", ~uint64_t{0})
                         .set_string("text", "x")
                         .set_f32("nan", std::numeric_limits<float>::quiet_NaN())
                         .set_raw("two", 7, "\2")
                         .set_strings("list", {"a", "b"})
                         .bytes();
  const GgufFile file(bytes, "m.gguf");
  const GgufMetadata& metadata = file.metadata();
  const auto error = [&](auto read) { return load_error_of([&] { read(metadata); }); };
  EXPECT_THAT(error([](const auto& m) { m.integer("big", 0, 9); }), HasSubstr("found u64"));
  EXPECT_THAT(error([](const auto& m) { m.integer("text", 0, 9); }), HasSubstr("found string"));
  EXPECT_THAT(error([](const auto& m) { m.number("nan"); }), HasSubstr("a finite number"));
  EXPECT_THAT(error([](const auto& m) { m.boolean("two"); }), HasSubstr("found 2"));
  EXPECT_THAT(error([](const auto& m) { m.strings("list", 1); }), HasSubstr("at most 1 elements"));
  EXPECT_THAT(error([](const auto& m) { m.integers("list", 9); }),
              HasSubstr("an array of integers, found array of 2 string"));
  EXPECT_EQ(error([](const auto& m) { m.required_integer("none", 1, 9); }),
            "m.gguf: none: expected an integer from 1 to 9, found no such key");
}

TEST(GgufFile, UnsupportedTypesAreNamed) {
  const auto error = error_of(GgufWriter().add_raw_tensor("blk.0.attn_q.weight", 23, {256}, 0, {}));
  EXPECT_EQ(error,
            "m.gguf: blk.0.attn_q.weight: expected one of F32, F16, BF16, Q4_0, Q4_1, Q5_0, Q5_1, "
            "Q8_0, Q2_K, Q3_K, Q4_K, Q5_K, Q6_K, found IQ4_XS");
  EXPECT_THAT(error_of(GgufWriter().add_raw_tensor("t", 77, {256}, 0, {})), HasSubstr("type 77"));
}

TEST(GgufFile, BlocksHaveTheirTypesSizes) {
  struct Block {
    uint32_t id;
    uint64_t elements;
    size_t bytes;
  };
  for (const Block block : {Block{2, 32, 18}, Block{3, 32, 20}, Block{6, 32, 22}, Block{7, 32, 24},
                            Block{8, 32, 34}, Block{10, 256, 84}, Block{11, 256, 110},
                            Block{12, 256, 144}, Block{13, 256, 176}, Block{14, 256, 210}}) {
    const std::vector<std::byte> data(6 * block.bytes);
    const std::vector<uint64_t> dims = {2 * block.elements, 3};
    const auto bytes = GgufWriter().add_raw_tensor("t", block.id, dims, 0, data).bytes();
    EXPECT_EQ(GgufFile(bytes, "m.gguf").find("t")->bytes.size(), data.size()) << block.id;
    const std::vector<uint64_t> odd = {2 * block.elements - 1, 3};
    EXPECT_THAT(error_of(GgufWriter().add_raw_tensor("t", block.id, odd, 0, data)),
                HasSubstr("rows of a multiple of"))
        << block.id;
    // The file's padding may hold up to 31 bytes more.
    const std::vector<uint64_t> more = {2 * block.elements * 3, 3};
    EXPECT_THAT(error_of(GgufWriter().add_raw_tensor("t", block.id, more, 0, data)),
                HasSubstr("is the file complete?"))
        << block.id;
  }
}

TEST(GgufFile, TensorShapesAndPlacesAreChecked) {
  const auto with = [](uint32_t type, const std::vector<uint64_t>& dims, uint64_t offset) {
    return error_of(GgufWriter().add_raw_tensor("t", type, dims, offset, kFourFloats));
  };
  EXPECT_EQ(with(0, {4}, 0), "no error");
  EXPECT_THAT(with(0, {}, 0), HasSubstr("1 to 4 dimensions"));
  EXPECT_THAT(with(0, {1, 1, 1, 1, 1}, 0), HasSubstr("1 to 4 dimensions"));
  EXPECT_THAT(with(0, {4, 0}, 0), HasSubstr("0 as dimension 1"));
  EXPECT_THAT(with(0, {uint64_t{1} << 32, uint64_t{1} << 32}, 0), HasSubstr("dimensions above 0"));
  EXPECT_THAT(with(0, {uint64_t{1} << 62}, 0), HasSubstr("fewer than 2^64 bytes"));
  EXPECT_THAT(with(2, {48}, 0), HasSubstr("a multiple of 32 elements (Q4_0), found 48"));
  EXPECT_THAT(with(0, {4}, 8), HasSubstr("a multiple of 32, found 8"));
  EXPECT_THAT(with(0, {4}, 32), HasSubstr("16 bytes at offset 32"));
  EXPECT_THAT(with(0, {4}, ~uint64_t{0} - 31), HasSubstr("is the file complete?"));
  EXPECT_THAT(with(0, {9}, 0), HasSubstr("36 bytes at offset 0"));
}

TEST(GgufFile, TensorsMayNotShareNamesOrBytes) {
  const auto two = [](const char* first, const char* second, uint64_t offset) {
    return error_of(GgufWriter()
                        .add_raw_tensor(first, 0, {16}, 0, std::vector<std::byte>(64))
                        .add_raw_tensor(second, 0, {4}, offset, kFourFloats));
  };
  EXPECT_EQ(two("a", "b", 64), "no error");
  EXPECT_EQ(two("a", "a", 64), "m.gguf: a: expected one tensor of this name, found two");
  EXPECT_EQ(two("a", "b", 32), "m.gguf: b: expected bytes of its own, found an overlap with a");
  EXPECT_THAT(two("a", "b", 0), HasSubstr("an overlap with"));
}

TEST(GgufFile, AlignmentIsAPowerOfTwo) {
  const auto with = [](uint32_t alignment) {
    return error_of(GgufWriter().set_u32("general.alignment", alignment));
  };
  EXPECT_EQ(with(64), "no error");
  EXPECT_THAT(with(48), HasSubstr("general.alignment: expected a power of two, found 48"));
  EXPECT_THAT(with(0), HasSubstr("general.alignment"));
  EXPECT_THAT(with(1u << 31), HasSubstr("general.alignment"));
}

TEST(GgufFile, NamesInMessagesAreEscaped) {
  EXPECT_THAT(error_of(GgufWriter().add_raw_tensor("a\x1b[31m\n", 77, {1}, 0, {})),
              HasSubstr("a\\x1b[31m\\x0a: expected"));
}

TEST(GgufSource, NamesAndShapesAreHfs) {
  EXPECT_EQ(hf_tensor_name("blk.12.attn_q.weight"), "model.layers.12.self_attn.q_proj.weight");
  EXPECT_EQ(hf_tensor_name("blk.0.attn_k.bias"), "model.layers.0.self_attn.k_proj.bias");
  EXPECT_EQ(hf_tensor_name("blk.0.attn_q_norm.weight"), "model.layers.0.self_attn.q_norm.weight");
  EXPECT_EQ(hf_tensor_name("output.weight"), "lm_head.weight");
  for (const char* kept : {"blk.0.attn_rot_embd.weight", "blk.", "blk.weight", "x", "", "rope.y"}) {
    EXPECT_EQ(hf_tensor_name(kept), kept);
  }
  const auto bytes = testing::small_llama_gguf().bytes();
  const GgufSource source(GgufFile(bytes, "m.gguf"), nullptr);
  EXPECT_TRUE(source.rope_rows_interleaved());
  EXPECT_EQ(source.names().size(), 11u);
  const StoredTensor* down = source.find("model.layers.0.mlp.down_proj.weight");
  ASSERT_NE(down, nullptr);
  EXPECT_EQ(down->shape, (std::vector<int64_t>{32, 64}));
  EXPECT_EQ(down->dtype, DType::kQ4_0);
  EXPECT_EQ(source.find("model.norm.weight")->shape, std::vector<int64_t>{32});
  EXPECT_EQ(source.find("lm_head.weight"), nullptr);
}

TEST(GgufSource, TwoNamesOfOneMeaningAreRefused) {
  const auto bytes = GgufWriter()
                         .add_f32("output_norm.weight", {4}, {1, 1, 1, 1})
                         .add_f32("model.norm.weight", {4}, {1, 1, 1, 1})
                         .bytes();
  EXPECT_THAT(load_error_of([&] { GgufSource(GgufFile(bytes, "m.gguf"), nullptr); }),
              HasSubstr("model.norm.weight: expected one tensor of this meaning"));
}

}  // namespace
}  // namespace quire::checkpoint
