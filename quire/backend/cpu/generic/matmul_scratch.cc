#include "quire/backend/cpu/generic/matmul_order.h"
#include "quire/base/huge_buffer.h"

namespace quire::backend::cpu {

MatmulScratch& matmul_scratch() {
  thread_local const HugeBuffer buffer(sizeof(MatmulScratch), MemoryTag::kOther, nullptr);
  return *reinterpret_cast<MatmulScratch*>(buffer.data());
}

}  // namespace quire::backend::cpu
