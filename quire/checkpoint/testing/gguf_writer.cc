#include "quire/checkpoint/testing/gguf_writer.h"

#include <bit>

#include "quire/base/check.h"
#include "quire/checkpoint/testing/little_endian.h"

namespace quire::checkpoint::testing {
namespace {

constexpr size_t kAlignment = 32;

uint32_t type_id(DType dtype) {
  switch (dtype) {
    case DType::kF32:
      return 0;
    case DType::kF16:
      return 1;
    case DType::kQ4_0:
      return 2;
    case DType::kQ4_1:
      return 3;
    case DType::kQ5_0:
      return 6;
    case DType::kQ5_1:
      return 7;
    case DType::kQ8_0:
      return 8;
    case DType::kQ2_K:
      return 10;
    case DType::kQ3_K:
      return 11;
    case DType::kQ4_K:
      return 12;
    case DType::kQ5_K:
      return 13;
    case DType::kQ6_K:
      return 14;
    case DType::kBF16:
      return 30;
    default:
      QUIRE_CHECK_MSG(false, "no GGUF type");
      return 0;
  }
}

void append_string(std::string& out, std::string_view text) {
  append(out, uint64_t{text.size()});
  out += text;
}

void pad(std::string& out) {
  out.resize((out.size() + kAlignment - 1) / kAlignment * kAlignment);
}

}  // namespace

GgufWriter& GgufWriter::set_raw(std::string_view key, uint32_t type, std::string_view payload) {
  append_string(pairs_, key);
  append(pairs_, type);
  pairs_ += payload;
  ++num_pairs_;
  return *this;
}

GgufWriter& GgufWriter::set_u32(std::string_view key, uint32_t value) {
  return set_raw(key, 4, little_endian(value));
}
GgufWriter& GgufWriter::set_i32(std::string_view key, int32_t value) {
  return set_raw(key, 5, little_endian(value));
}
GgufWriter& GgufWriter::set_f32(std::string_view key, float value) {
  return set_raw(key, 6, little_endian(value));
}
GgufWriter& GgufWriter::set_bool(std::string_view key, bool value) {
  return set_raw(key, 7, value ? std::string_view("\1", 1) : std::string_view("\0", 1));
}
GgufWriter& GgufWriter::set_u64(std::string_view key, uint64_t value) {
  return set_raw(key, 10, little_endian(value));
}

GgufWriter& GgufWriter::set_string(std::string_view key, std::string_view value) {
  std::string payload;
  append_string(payload, value);
  return set_raw(key, 8, payload);
}

GgufWriter& GgufWriter::set_strings(std::string_view key, const std::vector<std::string>& values) {
  std::string payload = little_endian(uint32_t{8});
  append(payload, uint64_t{values.size()});
  for (const std::string& value : values) append_string(payload, value);
  return set_raw(key, 9, payload);
}

GgufWriter& GgufWriter::set_i32s(std::string_view key, const std::vector<int32_t>& values) {
  std::string payload = little_endian(uint32_t{5});
  append(payload, uint64_t{values.size()});
  for (const int32_t value : values) append(payload, value);
  return set_raw(key, 9, payload);
}

GgufWriter& GgufWriter::add_raw_tensor(std::string_view name, uint32_t type,
                                       const std::vector<uint64_t>& dims, uint64_t offset,
                                       std::span<const std::byte> data) {
  append_string(infos_, name);
  append(infos_, static_cast<uint32_t>(dims.size()));
  for (const uint64_t dim : dims) append(infos_, dim);
  append(infos_, type);
  append(infos_, offset);
  data_.append(reinterpret_cast<const char*>(data.data()), data.size());
  pad(data_);
  ++num_tensors_;
  return *this;
}

GgufWriter& GgufWriter::add_tensor(std::string_view name, DType dtype,
                                   const std::vector<int64_t>& shape,
                                   std::span<const std::byte> data) {
  const std::vector<uint64_t> dims(shape.rbegin(), shape.rend());
  return add_raw_tensor(name, type_id(dtype), dims, data_.size(), data);
}

GgufWriter& GgufWriter::add_f32(std::string_view name, const std::vector<int64_t>& shape,
                                const std::vector<float>& values) {
  return add_tensor(name, DType::kF32, shape, std::as_bytes(std::span(values)));
}

GgufWriter& GgufWriter::set_version(uint32_t version) {
  version_ = version;
  return *this;
}

std::vector<std::byte> GgufWriter::bytes() const {
  std::string out = "GGUF";
  append(out, version_);
  append(out, num_tensors_);
  append(out, num_pairs_);
  out += pairs_;
  out += infos_;
  pad(out);
  out += data_;
  return to_bytes(out);
}

void GgufWriter::write(const std::string& path) const {
  write_file(path, bytes());
}

}  // namespace quire::checkpoint::testing
