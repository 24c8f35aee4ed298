// Embedding: a table with one row per token id.
#pragma once

#include <memory>

#include "quire/backend/program_builder.h"
#include "quire/weights/weight_scope.h"

namespace quire::nn {

/// The table is packed like any weight, so that a tied output head can share it.
class Embedding {
 public:
  /// Takes "<scope>.weight" [vocab_size, hidden_size].
  Embedding(const weights::WeightScope& scope, int64_t vocab_size, int64_t hidden_size)
      : table_(scope.weight(vocab_size, hidden_size)) {}

  /// The step's token ids -> [T, hidden_size].
  backend::Tensor record(backend::ProgramBuilder& p) const { return p.embed(table_); }
  const std::shared_ptr<const backend::PackedWeight>& table() const { return table_; }

 private:
  std::shared_ptr<const backend::PackedWeight> table_;
};

}  // namespace quire::nn
