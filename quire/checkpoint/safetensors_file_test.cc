#include "quire/checkpoint/safetensors_file.h"

#include <cstring>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "quire/checkpoint/testing/little_endian.h"
#include "quire/checkpoint/testing/load_error_of.h"
#include "quire/checkpoint/testing/safetensors_writer.h"
#include "quire/checkpoint/testing/small_llama.h"

namespace quire::checkpoint {
namespace {

using ::testing::HasSubstr;
using testing::load_error_of;
using testing::SafetensorsWriter;

std::string error_of(const std::vector<std::byte>& bytes) {
  return load_error_of([&] { SafetensorsFile(bytes, "m.safetensors"); });
}
std::string error_of(const std::string& header, size_t data_bytes) {
  return error_of(SafetensorsWriter::raw(header, std::string(data_bytes, 'x')));
}

TEST(SafetensorsFile, ReadsWhatWasWritten) {
  const uint16_t half[3] = {0x3c00, 0x4000, 0x4200};
  const auto bytes = SafetensorsWriter()
                         .add("h", DType::kF16, {3, 1}, std::as_bytes(std::span(half)))
                         .add_f32("f", {2}, {1.5f, -2.0f})
                         .add_f32("scalar", {}, {7.0f})
                         .add_f32("none", {0, 4}, {})
                         .bytes();
  const SafetensorsFile file(bytes, "m.safetensors");
  EXPECT_EQ(file.tensors().size(), 4u);
  const StoredTensor* h = file.find("h");
  ASSERT_NE(h, nullptr);
  EXPECT_EQ(h->dtype, DType::kF16);
  EXPECT_EQ(h->shape, (std::vector<int64_t>{3, 1}));
  EXPECT_EQ(std::memcmp(h->bytes.data(), half, sizeof(half)), 0);
  float values[2];
  std::memcpy(values, file.find("f")->bytes.data(), sizeof(values));
  EXPECT_EQ(values[1], -2.0f);
  EXPECT_TRUE(file.find("scalar")->shape.empty());
  EXPECT_EQ(file.find("none")->bytes.size(), 0u);
  EXPECT_EQ(file.find("other"), nullptr);
}

TEST(SafetensorsFile, EveryCutIsAnError) {
  const auto whole = testing::small_llama_safetensors().bytes();
  EXPECT_EQ(error_of(whole), "no error");
  for (size_t size = 0; size < whole.size(); size += size < 2000 ? 1 : 101) {
    const std::vector<std::byte> cut(whole.begin(), whole.begin() + static_cast<ptrdiff_t>(size));
    EXPECT_NE(error_of(cut), "no error") << size;
  }
}

TEST(SafetensorsFile, HeaderLengthIsBounded) {
  auto bytes = SafetensorsWriter().add_f32("a", {1}, {1}).bytes();
  const uint64_t huge = ~uint64_t{0};
  std::memcpy(bytes.data(), &huge, sizeof(huge));
  EXPECT_THAT(error_of(bytes), HasSubstr("header length: expected at most 100000000"));
  const uint64_t beyond = bytes.size();
  std::memcpy(bytes.data(), &beyond, sizeof(beyond));
  EXPECT_THAT(error_of(bytes), HasSubstr("header: expected"));
}

TEST(SafetensorsFile, HeadersAreStrict) {
  const std::string good = R"("dtype":"F32","shape":[1],"data_offsets":[0,4])";
  EXPECT_EQ(error_of("{\"a\":{" + good + "}}  ", 4), "no error");
  EXPECT_EQ(error_of("{\"a\":{" + good + "},\"a\":{" + good + "}}", 4),
            "m.safetensors: header: a: expected one value, found the key twice");
  EXPECT_THAT(error_of("{\"a\":{" + good + R"(,"dtype":"F32"}})", 4),
              HasSubstr("header: a: dtype: expected one value, found the key twice"));
  EXPECT_THAT(error_of(R"({"__metadata__":{"k":"1","k":"2"}})", 0), HasSubstr("the key twice"));
  EXPECT_THAT(error_of(R"({"__metadata__":{"k":1}})", 0), HasSubstr("found a number"));
  EXPECT_THAT(error_of("{\"a\":{" + good + R"(,"more":[1]}})", 4), HasSubstr("an unknown key"));
  EXPECT_THAT(error_of(R"({"a":{"dtype":"F32","shape":[1]}})", 4),
              HasSubstr("a: data_offsets: expected a value, found no such key"));
  EXPECT_THAT(error_of(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0]}})", 4),
              HasSubstr("data_offsets: expected 2 numbers, found 1"));
  EXPECT_THAT(error_of(R"({"a":{"dtype":["F32"],"shape":[1],"data_offsets":[0,4]}})", 4),
              HasSubstr("found an array"));
  EXPECT_THAT(error_of(R"({"a":{"dtype":"F32","shape":[-1],"data_offsets":[0,4]}})", 4),
              HasSubstr("shape: expected numbers from 0, found -1"));
  EXPECT_THAT(error_of(R"({"a":{"dtype":"F32","shape":[1.5],"data_offsets":[0,4]}})", 4),
              HasSubstr("shape: expected an integer, found 1.5"));
  EXPECT_THAT(error_of(R"({"a":{"dtype":"F32","shape":[[1]],"data_offsets":[0,4]}})", 4),
              HasSubstr("found an array"));
  EXPECT_THAT(error_of(R"({"a":{"dtype":"F32","shape":["1"],"data_offsets":[0,4]}})", 4),
              HasSubstr("found a string"));
  EXPECT_THAT(error_of(R"({"a":1})", 0), HasSubstr("found a number"));
  EXPECT_THAT(error_of("[1]", 0), HasSubstr("header: expected a JSON object"));
  EXPECT_THAT(error_of("{} {}", 0), HasSubstr("one JSON object"));
  EXPECT_THAT(error_of("{\"a\":", 0), HasSubstr("header: expected JSON"));
  EXPECT_THAT(error_of(std::string(50'000, '{'), 0), HasSubstr("header"));
  EXPECT_THAT(error_of("{\"a\":" + std::string(50'000, '['), 0), HasSubstr("header"));
}

TEST(SafetensorsFile, TypesShapesAndRangesMustAgree) {
  const auto one = [](const char* dtype, const char* shape, const char* offsets, size_t data) {
    return error_of(std::string(R"({"w":{"dtype":")") + dtype + R"(","shape":)" + shape +
                        R"(,"data_offsets":)" + offsets + "}}",
                    data);
  };
  EXPECT_EQ(one("BF16", "[2,3]", "[0,12]", 12), "no error");
  EXPECT_THAT(one("F8_E4M3", "[2]", "[0,2]", 2), HasSubstr("w: expected a type among"));
  EXPECT_THAT(one("Q4_0", "[32]", "[0,18]", 18), HasSubstr("w: expected a type among"));
  EXPECT_THAT(one("BF16", "[2,3]", "[0,13]", 12), HasSubstr("is the file complete?"));
  EXPECT_THAT(one("BF16", "[2,3]", "[4,2]", 12), HasSubstr("found 4 to 2"));
  EXPECT_THAT(one("BF16", "[2,2]", "[0,12]", 12), HasSubstr("found 12 bytes for BF16 [2, 2]"));
  EXPECT_THAT(one("I64", "[2305843009213693952,1]", "[0,0]", 0), HasSubstr("as many bytes"));
  EXPECT_THAT(one("U8", "[18446744073709551615]", "[0,0]", 0), HasSubstr("as many bytes"));
}

TEST(SafetensorsFile, NoOverlapHoleOrRest) {
  const auto two = [](const char* second, size_t data) {
    return error_of(std::string(R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},)") +
                        R"("b":{"dtype":"U8","shape":[4],"data_offsets":)" + second + "}}",
                    data);
  };
  EXPECT_EQ(two("[4,8]", 8), "no error");
  EXPECT_THAT(two("[3,7]", 7),
              HasSubstr("b: expected data_offsets that begin at 4, found 3: an overlap"));
  EXPECT_THAT(two("[0,4]", 4), HasSubstr("an overlap"));
  EXPECT_THAT(two("[5,9]", 9),
              HasSubstr("b: expected data_offsets that begin at 4, found 5: a hole"));
  EXPECT_THAT(two("[4,8]", 9), HasSubstr("data: expected 8 bytes, found 9"));
}

}  // namespace
}  // namespace quire::checkpoint
