#include "quire/plan/textbook.h"

namespace quire::plan {

double textbook_weight_bytes(int64_t parameters, double bits) {
  return static_cast<double>(parameters) * bits / 8;
}

int64_t textbook_kv_bytes(int64_t layers, int64_t kv_heads, int64_t head_dim, int64_t tokens,
                          int64_t batch, int64_t bytes) {
  return 2 * layers * kv_heads * head_dim * tokens * batch * bytes;
}

int64_t textbook_activation_bytes(int64_t hidden, int64_t tokens, int64_t batch, int64_t bytes,
                                  int64_t layers) {
  return 2 * hidden * tokens * batch * bytes * layers;
}

}  // namespace quire::plan
