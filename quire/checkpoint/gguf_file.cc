#include "quire/checkpoint/gguf_file.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "quire/base/error.h"

namespace quire::checkpoint {
namespace {

constexpr uint64_t kSmallestTensor = 8 + 1 + 4 + 8 + 4 + 8;  // a name of one byte, one dimension
constexpr int64_t kDefaultAlignment = 32;
constexpr std::string_view kSupported =
    "one of F32, F16, BF16, Q4_0, Q4_1, Q5_0, Q5_1, Q8_0, Q2_K, Q3_K, Q4_K, Q5_K, Q6_K";

struct TypeName {
  uint32_t id;
  std::string_view name;
};
constexpr std::array<TypeName, 21> kOtherTypes = {{
    {9, "Q8_1"},   {15, "Q8_K"},     {16, "IQ2_XXS"},  {17, "IQ2_XS"}, {18, "IQ3_XXS"},
    {19, "IQ1_S"}, {20, "IQ4_NL"},   {21, "IQ3_S"},    {22, "IQ2_S"},  {23, "IQ4_XS"},
    {24, "I8"},    {25, "I16"},      {26, "I32"},      {27, "I64"},    {28, "F64"},
    {29, "IQ1_M"}, {31, "Q4_0_4_4"}, {32, "Q4_0_4_8"}, {34, "TQ1_0"},  {35, "TQ2_0"},
    {39, "MXFP4"},
}};

struct TypeId {
  uint32_t id;
  DType dtype;
};
constexpr std::array<TypeId, 13> kTypes = {{
    {0, DType::kF32},
    {1, DType::kF16},
    {2, DType::kQ4_0},
    {3, DType::kQ4_1},
    {6, DType::kQ5_0},
    {7, DType::kQ5_1},
    {8, DType::kQ8_0},
    {10, DType::kQ2_K},
    {11, DType::kQ3_K},
    {12, DType::kQ4_K},
    {13, DType::kQ5_K},
    {14, DType::kQ6_K},
    {30, DType::kBF16},
}};

std::optional<DType> dtype_of(uint32_t id) {
  const auto known = std::ranges::find(kTypes, id, &TypeId::id);
  return known != kTypes.end() ? std::optional(known->dtype) : std::nullopt;
}

std::string type_name(uint32_t id) {
  const auto known = std::ranges::find(kOtherTypes, id, &TypeName::id);
  return known != kOtherTypes.end() ? std::string(known->name) : fmt::format("type {}", id);
}

uint64_t align_up(uint64_t value, uint64_t alignment) {
  return (value + alignment - 1) & ~(alignment - 1);
}

/// What the tensor table says of one tensor, before its bytes are looked up.
struct TensorInfo {
  GgufTensor tensor;
  uint64_t offset = 0;
  uint64_t num_bytes = 0;
};

void read_dims(ByteCursor& cursor, const std::string& file, GgufTensor& tensor) {
  tensor.num_dims = cursor.read<uint32_t>(tensor.name);
  if (tensor.num_dims < 1 || tensor.num_dims > tensor.dims.size()) {
    throw LoadError(file, printable(tensor.name), "1 to 4 dimensions",
                    fmt::format("{}", tensor.num_dims));
  }
  uint64_t elements = 1;
  for (uint32_t d = 0; d < tensor.num_dims; ++d) {
    tensor.dims[d] = cursor.read<uint64_t>(tensor.name);
    if (tensor.dims[d] == 0 || !checked_multiply(elements, tensor.dims[d], elements) ||
        elements > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) {
      throw LoadError(file, printable(tensor.name), "dimensions above 0 with a product below 2^63",
                      fmt::format("{} as dimension {}", tensor.dims[d], d));
    }
  }
}

TensorInfo read_tensor_info(ByteCursor& cursor, const std::string& file, uint64_t index) {
  TensorInfo info;
  GgufTensor& tensor = info.tensor;
  tensor.name = cursor.read_string(fmt::format("name of tensor {}", index));
  if (tensor.name.empty()) {
    throw LoadError(file, fmt::format("name of tensor {}", index), "a name", "an empty one");
  }
  read_dims(cursor, file, tensor);
  const auto id = cursor.read<uint32_t>(tensor.name);
  const auto dtype = dtype_of(id);
  if (!dtype) throw LoadError(file, printable(tensor.name), kSupported, type_name(id));
  tensor.dtype = *dtype;
  info.offset = cursor.read<uint64_t>(tensor.name);

  const auto block = static_cast<uint64_t>(dtype_info(*dtype).block_elements);
  const auto block_bytes = static_cast<uint64_t>(dtype_info(*dtype).block_bytes);
  if (tensor.dims[0] % block != 0) {
    throw LoadError(
        file, printable(tensor.name),
        fmt::format("rows of a multiple of {} elements ({})", block, dtype_name(*dtype)),
        fmt::format("{}", tensor.dims[0]));
  }
  uint64_t blocks = tensor.dims[0] / block;
  for (uint32_t d = 1; d < tensor.num_dims; ++d) blocks *= tensor.dims[d];  // at most the elements
  if (!checked_multiply(blocks, block_bytes, info.num_bytes)) {
    throw LoadError(file, printable(tensor.name), "fewer than 2^64 bytes", "more");
  }
  return info;
}

}  // namespace

GgufFile::Header GgufFile::read_header(std::span<const std::byte> bytes, const std::string& file) {
  ByteCursor cursor(bytes, file);
  const auto magic = cursor.take(4, "magic");
  if (std::memcmp(magic.data(), "GGUF", 4) != 0) {
    throw LoadError(file, "magic", "GGUF",
                    printable({reinterpret_cast<const char*>(magic.data()), magic.size()}));
  }
  const auto version = cursor.read<uint32_t>("version");
  if (version != 2 && version != 3) {
    const bool swapped = version == 0x02000000u || version == 0x03000000u;
    throw LoadError(file, "version", "2 or 3, little-endian",
                    swapped ? "a big-endian file" : fmt::format("{}", version));
  }
  const auto num_tensors = cursor.read<uint64_t>("tensor count");
  const auto num_pairs = cursor.read<uint64_t>("metadata count");
  if (num_tensors > cursor.remaining() / kSmallestTensor) {
    throw LoadError(file, "tensor count", fmt::format("{} tensors", num_tensors),
                    fmt::format("{} bytes before the end of the file", cursor.remaining()));
  }
  return {cursor, num_tensors, num_pairs};
}

GgufFile::GgufFile(std::span<const std::byte> bytes, const std::string& file)
    : GgufFile(read_header(bytes, file), bytes, file) {}

GgufFile::GgufFile(Header header, std::span<const std::byte> bytes, std::string file)
    : metadata_(header.cursor, header.num_pairs, std::move(file)) {
  read_tensors(header.cursor, header.num_tensors, bytes);
  reject_overlap();
  std::ranges::sort(tensors_, {}, &GgufTensor::name);
  const auto twice = std::ranges::adjacent_find(tensors_, {}, &GgufTensor::name);
  if (twice != tensors_.end()) {
    throw LoadError(this->file(), printable(twice->name), "one tensor of this name", "two");
  }
}

void GgufFile::read_tensors(ByteCursor& cursor, uint64_t count, std::span<const std::byte> bytes) {
  constexpr int64_t kLargestAlignment = 1 << 20;
  const auto alignment = static_cast<uint64_t>(
      metadata_.integer("general.alignment", 8, kLargestAlignment).value_or(kDefaultAlignment));
  if (!std::has_single_bit(alignment)) {
    throw LoadError(file(), "general.alignment", "a power of two", fmt::format("{}", alignment));
  }
  std::vector<TensorInfo> infos;
  for (uint64_t i = 0; i < count; ++i) infos.push_back(read_tensor_info(cursor, file(), i));

  const uint64_t data_start = std::min(align_up(cursor.position(), alignment), bytes.size());
  const auto data = bytes.subspan(data_start);
  tensors_.reserve(infos.size());
  for (TensorInfo& info : infos) {
    const auto name = printable(info.tensor.name);
    if (info.offset % alignment != 0) {
      throw LoadError(file(), name, fmt::format("an offset that is a multiple of {}", alignment),
                      fmt::format("{}", info.offset));
    }
    if (info.offset > data.size() || info.num_bytes > data.size() - info.offset) {
      throw LoadError(file(), name,
                      fmt::format("{} bytes at offset {} of the data", info.num_bytes, info.offset),
                      fmt::format("{} bytes of data: is the file complete?", data.size()));
    }
    info.tensor.bytes = data.subspan(info.offset, info.num_bytes);
    tensors_.push_back(info.tensor);
  }
}

void GgufFile::reject_overlap() const {
  std::vector<const GgufTensor*> by_place;
  by_place.reserve(tensors_.size());
  for (const GgufTensor& tensor : tensors_) by_place.push_back(&tensor);
  std::ranges::sort(by_place, {}, [](const GgufTensor* t) { return t->bytes.data(); });
  for (size_t i = 1; i < by_place.size(); ++i) {
    const GgufTensor& before = *by_place[i - 1];
    if (before.bytes.data() + before.bytes.size() > by_place[i]->bytes.data()) {
      throw LoadError(file(), printable(by_place[i]->name), "bytes of its own",
                      fmt::format("an overlap with {}", printable(before.name)));
    }
  }
}

const GgufTensor* GgufFile::find(std::string_view name) const {
  const auto place = std::ranges::lower_bound(tensors_, name, {}, &GgufTensor::name);
  return place != tensors_.end() && place->name == name ? &*place : nullptr;
}

}  // namespace quire::checkpoint
