// LoadOptions: how a checkpoint's numbers are held in memory and how activations meet them.
#pragma once

#include <string_view>

#include "quire/backend/packed_weight.h"
#include "quire/tensor/dtype.h"

namespace quire::weights {

/// --dtype: the element type of weights that the checkpoint stores dense. Quantized weights keep
/// their codes whatever this says.
///   kAuto, kFloat16: the narrowest layout that holds the stored numbers exactly (each its own)
///   kFloat32, kBFloat16: that type
enum class WeightDType : uint8_t { kAuto, kFloat32, kFloat16, kBFloat16 };

/// --activation-dtype: how the inputs of matmuls are held; kAuto asks the backend for each weight.
enum class ActivationDType : uint8_t { kAuto, kF32, kBF16, kI8 };

struct LoadOptions {
  WeightDType dtype = WeightDType::kAuto;
  ActivationDType activation = ActivationDType::kAuto;
};

/// "auto", "float32", "float", "float16", "half", "bfloat16"; LoadError for others.
WeightDType parse_weight_dtype(std::string_view text);
/// "auto", "fp32", "bf16", "int8"; LoadError for others.
ActivationDType parse_activation_dtype(std::string_view text);

/// fp32, bf16 or fp16: the element type of a dense weight stored as `stored` (F32, F16 or BF16).
DType dense_dtype(DType stored, WeightDType wanted);

/// What `wanted` means for one weight; `preferred` is the backend's choice for it. Dense fp32
/// and fp16 weights meet fp32 activations always; int8 activations need int codes in the weight, so
/// that a dense bf16 weight meets bf16 ones.
backend::ActType activation_for(const backend::WeightSpec& spec, ActivationDType wanted,
                                backend::ActType preferred);

}  // namespace quire::weights
