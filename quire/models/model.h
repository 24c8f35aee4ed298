// Model: a loaded architecture, ready to be recorded: embedding, layers, head.
#pragma once

#include <cstdint>
#include <vector>

#include "quire/backend/program_builder.h"

namespace quire::models {

/// One layer of a model.
class Layer {
 public:
  virtual ~Layer() = default;
  /// x: [T, hidden] -> [T, hidden].
  virtual backend::Tensor record(backend::ProgramBuilder& p, backend::Tensor x) const = 0;
};

/// The parts are recorded one by one, so that whoever records (record_program, a pipeline stage, a
/// profiler) owns the loop over layers.
class Model {
 public:
  virtual ~Model() = default;
  /// The step's token ids -> [T, hidden].
  virtual backend::Tensor embed(backend::ProgramBuilder& p) const = 0;
  virtual int64_t num_layers() const = 0;
  virtual const Layer& layer(int64_t index) const = 0;
  /// x: [T, hidden] -> logits [R, vocab] of the rows that need them.
  virtual backend::Tensor head(backend::ProgramBuilder& p, backend::Tensor x) const = 0;
  /// The KV caches the layers use, in the order of their cache_group indices; `dtype` (bf16 or
  /// fp32) and `block_tokens` (a multiple of 16) are the caller's choice.
  virtual std::vector<backend::CacheGroupSpec> cache_groups(DType dtype,
                                                            int32_t block_tokens) const = 0;
};

}  // namespace quire::models
