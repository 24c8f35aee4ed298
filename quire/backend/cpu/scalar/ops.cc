#include "quire/backend/cpu/kernels.h"

namespace quire::backend::cpu::scalar {

void fill_ops(KernelTable& /*table*/) {}

}  // namespace quire::backend::cpu::scalar
