#include "quire/checkpoint/safetensors_source.h"

#include <filesystem>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "quire/base/error.h"
#include "quire/checkpoint/byte_cursor.h"
#include "quire/checkpoint/json_config.h"

namespace quire::checkpoint {
namespace {

constexpr const char* kSingle = "model.safetensors";
constexpr const char* kIndex = "model.safetensors.index.json";

bool is_there(const std::filesystem::path& path) {
  std::error_code error;
  return std::filesystem::exists(path, error);
}

bool is_plain_shard_name(std::string_view name) {
  return name.ends_with(".safetensors") && !name.starts_with('.') &&
         name.find_first_of(std::string_view("/\\\0", 3)) == std::string_view::npos;
}

}  // namespace

std::map<std::string, std::vector<std::string>> parse_safetensors_index(std::string_view json,
                                                                        std::string_view where) {
  const JsonConfig index(json, where);
  std::map<std::string, std::vector<std::string>> shards;
  for (auto& [tensor, shard] : index.required_string_map("weight_map")) {
    if (!is_plain_shard_name(shard)) {
      throw LoadError(where, fmt::format("weight_map: {}", printable(tensor)),
                      "the name of a .safetensors file in the same folder", printable(shard));
    }
    shards[shard].push_back(tensor);
  }
  if (shards.empty()) throw LoadError(where, "weight_map", "tensors", "none");
  return shards;
}

SafetensorsSource::SafetensorsSource(std::string folder) : folder_(std::move(folder)) {
  const std::filesystem::path path(folder_);
  if (is_there(path / kSingle)) {
    add_single();
  } else if (is_there(path / kIndex)) {
    add_sharded((path / kIndex).string());
  } else {
    const bool pickled =
        is_there(path / "pytorch_model.bin") || is_there(path / "pytorch_model.bin.index.json");
    throw LoadError(folder_, "weights", fmt::format("{} or {}", kSingle, kIndex),
                    pickled ? "pickled weights only, which are never loaded: convert them to "
                              "safetensors"
                            : "neither");
  }
}

SafetensorsFile SafetensorsSource::open_shard(const std::string& name) {
  const auto path = (std::filesystem::path(folder_) / name).string();
  const MappedFile& mapping = shards_.emplace_back(path);
  return SafetensorsFile(mapping.bytes(), path);
}

void SafetensorsSource::add_single() {
  const SafetensorsFile file = open_shard(kSingle);
  for (const StoredTensor& tensor : file.tensors()) {
    tensors_.emplace(tensor.name, Placed{tensor, shards_.size() - 1});
  }
}

void SafetensorsSource::add_sharded(const std::string& index_path) {
  const MappedFile index(index_path);
  const std::string_view json(reinterpret_cast<const char*>(index.bytes().data()),
                              index.bytes().size());
  for (const auto& [shard, names] : parse_safetensors_index(json, index_path)) {
    const SafetensorsFile file = open_shard(shard);
    for (const std::string& name : names) {
      const StoredTensor* tensor = file.find(name);
      if (tensor == nullptr) {
        throw LoadError(file.file(), printable(name), fmt::format("a tensor, as {} says", kIndex),
                        "none of this name");
      }
      tensors_.emplace(name, Placed{*tensor, shards_.size() - 1});
    }
  }
}

const StoredTensor* SafetensorsSource::find(std::string_view name) const {
  const auto place = tensors_.find(name);
  return place != tensors_.end() ? &place->second.tensor : nullptr;
}

std::vector<std::string> SafetensorsSource::names() const {
  std::vector<std::string> all;
  all.reserve(tensors_.size());
  for (const auto& [name, placed] : tensors_) all.push_back(name);
  return all;
}

void SafetensorsSource::release(const StoredTensor& tensor) const {
  const auto place = tensors_.find(tensor.name);
  if (place != tensors_.end()) shards_[place->second.shard].release(tensor.bytes);
}

}  // namespace quire::checkpoint
