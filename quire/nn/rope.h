// Rope: the rotary frequencies of a model, with the scaling its checkpoint asks for.
#pragma once

#include <cstdint>
#include <vector>

#include "quire/backend/program_builder.h"
#include "quire/checkpoint/model_config.h"

namespace quire::nn {

/// Shared by a model's layers.
class Rope {
 public:
  /// Computed in fp32, as transformers does, so that long positions get the same angles.
  Rope(int64_t head_dim, double theta, const checkpoint::RopeScaling& scaling);

  /// Rotates x [T, num_heads * head_dim] in place.
  backend::Tensor record(backend::ProgramBuilder& p, backend::Tensor x, int64_t num_heads) const;
  /// [head_dim / 2] radians a position.
  const std::vector<float>& inverse_frequencies() const { return inverse_frequencies_; }

 private:
  int64_t head_dim_;
  std::vector<float> inverse_frequencies_;
};

}  // namespace quire::nn
