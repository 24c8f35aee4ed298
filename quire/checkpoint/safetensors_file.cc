#include "quire/checkpoint/safetensors_file.h"

#include <algorithm>
#include <array>
#include <limits>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "quire/base/error.h"
#include "quire/checkpoint/byte_cursor.h"
#include "quire/checkpoint/safetensors_header.h"

namespace quire::checkpoint {
namespace {

constexpr uint64_t kMaxHeaderBytes = 100'000'000;
constexpr std::array kTypes = {DType::kF32, DType::kF16, DType::kBF16, DType::kI8,  DType::kU8,
                               DType::kI16, DType::kI32, DType::kI64,  DType::kF64, DType::kBool};

std::optional<DType> dtype_of(std::string_view name) {
  const auto type = std::ranges::find(kTypes, name, [](DType t) { return dtype_name(t); });
  return type == kTypes.end() ? std::nullopt : std::optional(*type);
}

/// The header's text, without the length before it.
std::string_view read_header(ByteCursor& cursor, const std::string& file) {
  const auto length = cursor.read<uint64_t>("header length");
  if (length > kMaxHeaderBytes) {
    throw LoadError(file, "header length", fmt::format("at most {}", kMaxHeaderBytes),
                    fmt::format("{}", length));
  }
  const auto header = cursor.take(length, "header");
  const std::string_view text(reinterpret_cast<const char*>(header.data()), header.size());
  if (!text.starts_with('{')) {
    throw LoadError(file, "header", "a JSON object", printable(text.substr(0, 16)));
  }
  return text;
}

StoredTensor locate(SafetensorsEntry entry, std::span<const std::byte> data,
                    const std::string& file) {
  const auto name = printable(entry.name);
  const auto dtype = dtype_of(entry.dtype);
  if (!dtype) {
    throw LoadError(file, name, "a type among F32 F16 BF16 F64 I8 U8 I16 I32 I64 BOOL",
                    printable(entry.dtype));
  }
  const uint64_t begin = entry.data_offsets[0];
  const uint64_t end = entry.data_offsets[1];
  if (begin > end || end > data.size()) {
    throw LoadError(file, name, fmt::format("data_offsets within 0 and {}", data.size()),
                    fmt::format("{} to {}: is the file complete?", begin, end));
  }
  StoredTensor tensor{std::move(entry.name), *dtype, {}, data.subspan(begin, end - begin), file};
  auto bytes = static_cast<uint64_t>(dtype_info(*dtype).block_bytes);
  bool fits = true;
  for (const uint64_t dim : entry.shape) {
    fits = fits && dim <= static_cast<uint64_t>(std::numeric_limits<int64_t>::max()) &&
           checked_multiply(bytes, dim, bytes);
    tensor.shape.push_back(static_cast<int64_t>(dim));
  }
  if (!fits || bytes != end - begin) {
    throw LoadError(file, name, "as many bytes as shape and type give",
                    fmt::format("{} bytes for {} [{}]", end - begin, entry.dtype,
                                fmt::join(entry.shape, ", ")));
  }
  return tensor;
}

/// Every byte of the data belongs to exactly one tensor.
void reject_overlap_and_holes(const std::vector<StoredTensor>& tensors,
                              std::span<const std::byte> data, const std::string& file) {
  struct Range {
    size_t begin;
    size_t end;
    const StoredTensor* tensor;
  };
  std::vector<Range> ranges;
  ranges.reserve(tensors.size());
  for (const StoredTensor& tensor : tensors) {
    const auto begin = static_cast<size_t>(tensor.bytes.data() - data.data());
    ranges.push_back({begin, begin + tensor.bytes.size(), &tensor});
  }
  std::ranges::sort(ranges, [](const Range& a, const Range& b) {
    return std::pair(a.begin, a.end) < std::pair(b.begin, b.end);
  });
  size_t next = 0;
  for (const Range& range : ranges) {
    if (range.begin != next) {
      throw LoadError(
          file, printable(range.tensor->name), fmt::format("data_offsets that begin at {}", next),
          fmt::format("{}: {}", range.begin, range.begin < next ? "an overlap" : "a hole"));
    }
    next = range.end;
  }
  if (next != data.size()) {
    throw LoadError(file, "data", fmt::format("{} bytes", next), fmt::format("{}", data.size()));
  }
}

}  // namespace

SafetensorsFile::SafetensorsFile(std::span<const std::byte> bytes, std::string file)
    : file_(std::move(file)) {
  ByteCursor cursor(bytes, file_);
  const auto header = read_header(cursor, file_);
  const auto data = bytes.subspan(cursor.position());
  for (SafetensorsEntry& entry : parse_safetensors_header(header, file_)) {
    tensors_.push_back(locate(std::move(entry), data, file_));
  }
  reject_overlap_and_holes(tensors_, data, file_);
  std::ranges::sort(tensors_, {}, &StoredTensor::name);
}

const StoredTensor* SafetensorsFile::find(std::string_view name) const {
  const auto place = std::ranges::lower_bound(tensors_, name, {}, &StoredTensor::name);
  return place != tensors_.end() && place->name == name ? &*place : nullptr;
}

}  // namespace quire::checkpoint
