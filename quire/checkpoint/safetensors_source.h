// SafetensorsSource: the tensors of an HF folder, from model.safetensors or from shards with an
// index.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "quire/base/mapped_file.h"
#include "quire/checkpoint/safetensors_file.h"
#include "quire/checkpoint/tensor_source.h"

namespace quire::checkpoint {

/// The weight_map of model.safetensors.index.json: shard file name -> the tensors it must hold.
/// Rejects names that leave the folder. `where` is the file named in errors.
std::map<std::string, std::vector<std::string>> parse_safetensors_index(std::string_view json,
                                                                        std::string_view where);

class SafetensorsSource : public TensorSource {
 public:
  /// Prefers model.safetensors, as HF does. Throws LoadError when the folder has neither form, when
  /// a shard is missing or damaged, or when it lacks a tensor that the index puts there.
  explicit SafetensorsSource(std::string folder);

  const StoredTensor* find(std::string_view name) const override;
  std::vector<std::string> names() const override;
  bool rope_rows_interleaved() const override { return false; }
  void release(const StoredTensor& tensor) const override;
  const std::string& path() const override { return folder_; }

 private:
  struct Placed {
    StoredTensor tensor;
    size_t shard;
  };

  SafetensorsFile open_shard(const std::string& name);
  void add_single();
  void add_sharded(const std::string& index_path);

  std::string folder_;
  std::vector<MappedFile> shards_;
  std::map<std::string, Placed, std::less<>> tensors_;
};

}  // namespace quire::checkpoint
