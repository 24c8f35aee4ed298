#include "quire/checkpoint/testing/safetensors_writer.h"

#include <fmt/format.h>

#include "quire/checkpoint/testing/little_endian.h"

namespace quire::checkpoint::testing {

SafetensorsWriter& SafetensorsWriter::add(std::string_view name, DType dtype,
                                          const std::vector<int64_t>& shape,
                                          std::span<const std::byte> data) {
  entries_ += fmt::format(R"({}"{}":{{"dtype":"{}","shape":[{}],"data_offsets":[{},{}]}})",
                          names_.empty() ? "" : ",", name, dtype_name(dtype), fmt::join(shape, ","),
                          data_.size(), data_.size() + data.size());
  names_.emplace_back(name);
  data_.append(reinterpret_cast<const char*>(data.data()), data.size());
  return *this;
}

SafetensorsWriter& SafetensorsWriter::add_f32(std::string_view name,
                                              const std::vector<int64_t>& shape,
                                              const std::vector<float>& values) {
  return add(name, DType::kF32, shape, std::as_bytes(std::span(values)));
}

std::vector<std::byte> SafetensorsWriter::raw(std::string_view header, std::string_view data) {
  std::string out = little_endian(uint64_t{header.size()});
  out += header;
  out += data;
  return to_bytes(out);
}

std::vector<std::byte> SafetensorsWriter::bytes() const {
  std::string header = R"({"__metadata__":{"format":"pt"})";
  if (!entries_.empty()) header += ",";
  header += entries_ + "}";
  header.resize((header.size() + 7) / 8 * 8, ' ');
  return raw(header, data_);
}

void SafetensorsWriter::write(const std::string& path) const {
  write_file(path, bytes());
}

void write_shards(const std::string& folder, const std::vector<Shard>& shards) {
  std::string map;
  for (const Shard& shard : shards) {
    shard.writer.write(folder + "/" + shard.file);
    for (const std::string& name : shard.writer.names()) {
      map += fmt::format(R"({}"{}":"{}")", map.empty() ? "" : ",", name, shard.file);
    }
  }
  write_file(folder + "/model.safetensors.index.json",
             to_bytes(fmt::format(R"({{"metadata":{{}},"weight_map":{{{}}}}})", map)));
}

}  // namespace quire::checkpoint::testing
