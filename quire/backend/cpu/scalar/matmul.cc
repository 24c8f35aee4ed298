#include "quire/backend/cpu/kernels.h"

namespace quire::backend::cpu::scalar {

void fill_matmul(KernelTable& /*table*/) {}

}  // namespace quire::backend::cpu::scalar
