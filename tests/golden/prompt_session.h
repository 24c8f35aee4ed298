// PromptSession: a model loaded on a backend, asked for the logits of one prompt.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "quire/backend/backend.h"
#include "quire/checkpoint/model_config.h"
#include "quire/checkpoint/tensor_source.h"
#include "quire/weights/load_options.h"

namespace quire::golden {

class PromptSession {
 public:
  struct Options {
    weights::LoadOptions load;
    DType kv_dtype = DType::kF32;
    int32_t block_tokens = 16;
    int64_t max_context = 64;
  };
  /// `backend` outlives the session and has no program yet.
  PromptSession(backend::Backend& backend, const checkpoint::TensorSource& tensors,
                const checkpoint::ModelConfig& config, const Options& options);
  ~PromptSession() { backend_.unload(); }
  PromptSession(const PromptSession&) = delete;
  PromptSession& operator=(const PromptSession&) = delete;

  /// Logits of the tokens at `positions` (ascending), a row each, with the prompt computed `chunk`
  /// tokens a step. Block ids run backwards, so that a block table that is ignored shows.
  std::vector<std::vector<float>> run(std::span<const int32_t> ids,
                                      std::span<const int32_t> positions, int64_t chunk);
  int64_t vocab_size() const { return vocab_size_; }

 private:
  std::vector<std::vector<float>> step(std::span<const int32_t> ids, int64_t begin,
                                       std::span<const int32_t> logits_rows);

  backend::Backend& backend_;
  int32_t block_tokens_;
  int64_t vocab_size_;
  std::vector<HugeBuffer> slabs_;
  std::vector<int32_t> block_table_;
};

}  // namespace quire::golden
