#include "quire/backend/program.h"

namespace quire::backend {
namespace {

constexpr int64_t kLine = 64;

constexpr int64_t align(int64_t bytes) {
  return (bytes + kLine - 1) / kLine * kLine;
}

}  // namespace

int64_t prepared_scales_offset(int64_t cols) {
  return align(cols);
}

int64_t prepared_sums_offset(int64_t cols, int64_t group) {
  return prepared_scales_offset(cols) + align(cols / group * 4);
}

int64_t row_bytes_of(TensorForm form, int64_t cols, int64_t group) {
  switch (form) {
    case TensorForm::kPlain:
      return align(cols * 4);
    case TensorForm::kPreparedBF16:
      return align((cols + 1) / 2 * 4);
    case TensorForm::kPreparedI8:
      return prepared_sums_offset(cols, group) + align(cols / group * 4);
  }
  return 0;
}

std::string_view op_kind_name(OpKind kind) {
  switch (kind) {
    case OpKind::kEmbed:
      return "embed";
    case OpKind::kRmsNorm:
      return "rms_norm";
    case OpKind::kPrepare:
      return "prepare";
    case OpKind::kMatmul:
      return "matmul";
    case OpKind::kRope:
      return "rope";
    case OpKind::kStoreKv:
      return "store_kv";
    case OpKind::kAttention:
      return "attention";
    case OpKind::kGatedAct:
      return "gated_act";
    case OpKind::kAdd:
      return "add";
    case OpKind::kGatherRows:
      return "gather_rows";
  }
  return "?";
}

int64_t Program::weight_bytes() const {
  int64_t total = 0;
  for (const auto& weight : weights) total += weight->bytes();
  for (const auto& vector : vectors) total += static_cast<int64_t>(vector.size()) * 4;
  return total;
}

}  // namespace quire::backend
