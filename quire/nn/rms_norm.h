// RmsNorm: x / sqrt(mean(x^2) + epsilon) * weight, row by row.
#pragma once

#include <string>
#include <vector>

#include "quire/backend/program_builder.h"
#include "quire/weights/weight_scope.h"

namespace quire::nn {

class RmsNorm {
 public:
  /// Takes "<scope>.weight" [size].
  RmsNorm(const weights::WeightScope& scope, int64_t size, double epsilon)
      : name_(scope.name()),
        weight_(scope.vector("weight", size)),
        epsilon_(static_cast<float>(epsilon)) {}

  /// x: [rows, size] -> [rows, size].
  backend::Tensor record(backend::ProgramBuilder& p, backend::Tensor x) const {
    const backend::ProgramBuilder::Scope scope(p, name_);
    return p.rms_norm(x, weight_, epsilon_);
  }

 private:
  std::string name_;
  std::vector<float> weight_;
  float epsilon_;
};

}  // namespace quire::nn
