// GatedMlp: down(silu(gate(x)) * up(x)).
#pragma once

#include <string>

#include "quire/nn/linear.h"

namespace quire::nn {

class GatedMlp {
 public:
  /// Takes "<scope>.{gate,up,down}_proj".
  GatedMlp(const weights::WeightScope& scope, int64_t hidden_size, int64_t intermediate_size,
           Bias bias)
      : name_(scope.name()),
        gate_proj_(scope.child("gate_proj"), intermediate_size, hidden_size, Split::kColumns, bias),
        up_proj_(scope.child("up_proj"), intermediate_size, hidden_size, Split::kColumns, bias),
        down_proj_(scope.child("down_proj"), hidden_size, intermediate_size, Split::kRows, bias) {}

  /// x: [T, hidden_size] -> [T, hidden_size].
  backend::Tensor record(backend::ProgramBuilder& p, backend::Tensor x) const {
    const backend::ProgramBuilder::Scope scope(p, name_);
    const backend::Tensor gate = gate_proj_.record(p, x);
    const backend::Tensor up = up_proj_.record(p, x);
    return down_proj_.record(p, p.gated_act(gate, up));
  }

 private:
  std::string name_;
  Linear gate_proj_;
  Linear up_proj_;
  Linear down_proj_;
};

}  // namespace quire::nn
