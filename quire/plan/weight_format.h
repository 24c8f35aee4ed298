// WeightFormat: how a plan supposes a model's matrices to be held, where that is not as its files
// say.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "quire/backend/packed_weight.h"
#include "quire/tensor/dtype.h"

namespace quire::plan {

struct WeightFormat {
  std::string_view name;     // "gptq-4"
  std::string_view aliases;  // others, separated by spaces
  DType stored = DType::kBF16;
  /// Embedding and output head too; else those stay 16 bits wide.
  bool everywhere = false;
  /// For formats that have no storage type of their own: the compute layout of a linear's weight.
  bool recoded = false;
  backend::Layout layout = backend::Layout::kDense;
  int64_t group = 0;  // inputs a scale covers; 0 = all of a row
  backend::Offset offset = backend::Offset::kNone;
  /// Bits a parameter has in the textbook's product.
  double textbook_bits = 16;
  std::string_view about;
};

/// All of them, the widest first.
std::span<const WeightFormat> weight_formats();
/// By name or alias, whatever the case. Throws LoadError that lists the names.
const WeightFormat& find_weight_format(std::string_view name);

/// True for a token table or an output head, by its tensor's name.
bool is_embedding_or_head(std::string_view tensor_name);

/// `spec` as `format` holds it. Throws LoadError when its inputs are no whole number of groups.
backend::WeightSpec recoded_spec(const WeightFormat& format, const backend::WeightSpec& spec);

}  // namespace quire::plan
