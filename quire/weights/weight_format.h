// make_weight_reader: the table of weight formats: which reader decodes which stored type.
#pragma once

#include <memory>

#include "quire/weights/load_options.h"
#include "quire/weights/stored_reader.h"

namespace quire::weights {

/// A reader for `tensor`, whose bytes must outlive it. Throws LoadError when the type is no weight
/// format or the shape does not fit it. A new format is one file and one line of the table.
std::unique_ptr<backend::WeightReader> make_weight_reader(
    const checkpoint::StoredTensor& tensor, WeightDType dtype, RowOrder order = {},
    const checkpoint::TensorSource* source = nullptr);

}  // namespace quire::weights
