#include "quire/backend/cpu/kernels.h"

namespace quire::backend::cpu::avx512 {

void fill_ops(KernelTable& /*table*/) {}

}  // namespace quire::backend::cpu::avx512
