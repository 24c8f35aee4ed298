#include "quire/backend/cpu/avx512/matmul_lines.inc"

#include "quire/backend/cpu/generic/matmul_driver.inc"
#include "quire/backend/cpu/generic/prepare.inc"

namespace quire::backend::cpu::avx512 {

void fill_matmul(KernelTable& table) {
  table.matmul[kDenseF32_F32] = matmul<DenseF32_F32, Direct, pack_floats<1>>;
  table.matmul[kDenseF16_F32] = matmul<DenseF16_F32, Direct, pack_floats<2>>;
  table.matmul[kDenseBF16_F32] = matmul<DenseBF16_F32, Direct, pack_floats<2>>;
  table.matmul[kDenseBF16_BF16] = matmul<DenseBF16_BF16, Direct, pack_pairs>;
  table.matmul[kInt8_F32] = matmul<Int8_F32, Direct, pack_floats<4>>;
  table.matmul[kInt8_BF16] = matmul<Int8_BF16, Grouped, pack_crossed_pairs>;
  table.matmul[kInt8_I8] = matmul<Int8_I8, Grouped, pack_quads>;
  table.matmul[kInt4_F32] = matmul<Int4_F32, Direct, pack_floats<8>>;
  table.matmul[kInt4_BF16] = matmul<Int4_BF16, Grouped, pack_crossed_pairs>;
  table.matmul[kInt4_I8] = matmul<Int4_I8, Grouped, pack_quads>;
  table.prepare_bf16 = prepare_bf16;
  table.prepare_i8 = prepare_i8;
}

}  // namespace quire::backend::cpu::avx512
