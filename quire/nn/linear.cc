#include "quire/nn/linear.h"

namespace quire::nn {

Linear::Linear(const weights::WeightScope& scope, int64_t out, int64_t in, Split split, Bias bias,
               weights::RowOrder order)
    : name_(scope.name()), weight_(scope.weight(out, in, order)), split_(split) {
  if (bias == Bias::kRequired) bias_ = scope.vector("bias", out, order);
  act_ = scope.activation(weight_->spec);
}

Linear::Linear(const weights::WeightScope& scope,
               std::shared_ptr<const backend::PackedWeight> weight, Split split)
    : name_(scope.name()),
      weight_(std::move(weight)),
      act_(scope.activation(weight_->spec)),
      split_(split) {}

backend::Tensor Linear::record(backend::ProgramBuilder& p, backend::Tensor x) const {
  return p.matmul(x, weight_, bias_, act_, name_);
}

}  // namespace quire::nn
