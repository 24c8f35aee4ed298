#include "quire/weights/load_options.h"

#include "quire/base/error.h"

namespace quire::weights {

WeightDType parse_weight_dtype(std::string_view text) {
  if (text == "auto") return WeightDType::kAuto;
  if (text == "float32" || text == "float") return WeightDType::kFloat32;
  if (text == "float16" || text == "half") return WeightDType::kFloat16;
  if (text == "bfloat16") return WeightDType::kBFloat16;
  throw LoadError("--dtype", "", "auto, float32, float16 or bfloat16", text);
}

ActivationDType parse_activation_dtype(std::string_view text) {
  if (text == "auto") return ActivationDType::kAuto;
  if (text == "fp32") return ActivationDType::kF32;
  if (text == "bf16") return ActivationDType::kBF16;
  if (text == "int8") return ActivationDType::kI8;
  throw LoadError("--activation-dtype", "", "auto, fp32, bf16 or int8", text);
}

DType dense_dtype(DType stored, WeightDType wanted) {
  switch (wanted) {
    case WeightDType::kFloat32:
      return DType::kF32;
    case WeightDType::kBFloat16:
      return DType::kBF16;
    case WeightDType::kAuto:
    case WeightDType::kFloat16:
      break;
  }
  return stored;
}

backend::ActType activation_for(const backend::WeightSpec& spec, ActivationDType wanted,
                                backend::ActType preferred) {
  const bool dense = spec.layout == backend::Layout::kDense;
  if (dense && spec.dtype != DType::kBF16) return backend::ActType::kF32;
  switch (wanted) {
    case ActivationDType::kAuto:
      return preferred;
    case ActivationDType::kF32:
      return backend::ActType::kF32;
    case ActivationDType::kBF16:
      return backend::ActType::kBF16;
    case ActivationDType::kI8:
      break;
  }
  return dense ? backend::ActType::kBF16 : backend::ActType::kI8;
}

}  // namespace quire::weights
