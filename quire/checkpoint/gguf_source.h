// GgufSource: the tensors of a GGUF file under HF names, shapes slowest dimension first.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "quire/base/mapped_file.h"
#include "quire/checkpoint/gguf_file.h"
#include "quire/checkpoint/tensor_source.h"

namespace quire::checkpoint {

/// GGUF's tensor of rotary divisors; it becomes part of ModelConfig and is no tensor of the source.
inline constexpr std::string_view kRopeFreqsTensor = "rope_freqs.weight";

/// "blk.3.attn_q.weight" -> "model.layers.3.self_attn.q_proj.weight". A name that has no HF name
/// known here comes back as it is.
std::string hf_tensor_name(std::string_view gguf_name);

class GgufSource : public TensorSource {
 public:
  /// `mapping` keeps the bytes that `file` points into alive; null when the caller does.
  GgufSource(const GgufFile& file, std::shared_ptr<const MappedFile> mapping);

  const StoredTensor* find(std::string_view name) const override;
  std::vector<std::string> names() const override;
  bool rope_rows_interleaved() const override { return rope_rows_interleaved_; }
  void release(const StoredTensor& tensor) const override;
  const std::string& path() const override { return path_; }

 private:
  std::shared_ptr<const MappedFile> mapping_;
  std::string path_;
  bool rope_rows_interleaved_ = false;
  std::vector<StoredTensor> tensors_;  // by name
};

}  // namespace quire::checkpoint
