// Linear: y = W x + b, recorded as one matmul.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "quire/backend/program_builder.h"
#include "quire/weights/weight_scope.h"

namespace quire::nn {

/// How ranks share a weight: not at all, by outputs (columns of y), or by inputs (rows of W^T),
/// where the parts of y are then added over the ranks.
enum class Split : uint8_t { kNone, kColumns, kRows };

/// Whether a bias belongs to the layer; a required one that is missing is a LoadError.
enum class Bias : uint8_t { kNone, kRequired };

class Linear {
 public:
  /// Takes "<scope>.weight" [out, in] and "<scope>.bias" [out]. `order` undoes a reordering of
  /// output rows.
  Linear(const weights::WeightScope& scope, int64_t out, int64_t in, Split split, Bias bias,
         weights::RowOrder order = {});
  /// Shares a weight that is packed already: a tied output head.
  Linear(const weights::WeightScope& scope, std::shared_ptr<const backend::PackedWeight> weight,
         Split split);

  /// x: [rows, in] -> [rows, out].
  backend::Tensor record(backend::ProgramBuilder& p, backend::Tensor x) const;
  Split split() const { return split_; }

 private:
  std::string name_;
  std::shared_ptr<const backend::PackedWeight> weight_;
  std::vector<float> bias_;  // empty = none
  backend::ActType act_;
  Split split_;
};

}  // namespace quire::nn
