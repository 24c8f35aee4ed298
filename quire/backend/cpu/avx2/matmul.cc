#include "quire/backend/cpu/kernels.h"

namespace quire::backend::cpu::avx2 {

void fill_matmul(KernelTable& /*table*/) {}

}  // namespace quire::backend::cpu::avx2
