// BoundOp: one operation of a program with its kernel, addresses and strides, ready to run on some
// rows.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "quire/backend/backend.h"
#include "quire/backend/cpu/kernels.h"
#include "quire/backend/program.h"

namespace quire::backend::cpu {

/// What operations are bound to when a program is loaded.
struct Bindings {
  const Program* program = nullptr;
  const KernelTable* kernels = nullptr;
  std::byte* arena = nullptr;
  std::span<const KvSlab> slabs;
  std::vector<const float*> rope_tables;  // per Program::vectors; null where none is needed
};

struct EmbedArgs {
  const PackedWeight* weight;
  float* out;
  int64_t out_stride;  // floats
};
struct GatherArgs {
  const std::byte* in;
  std::byte* out;
  int64_t row_bytes;
};
struct BoundMatmul {
  MatmulFn run;
  MatmulArgs args;
};
struct BoundPrepare {
  PrepareFn run;
  PrepareArgs args;
};
struct BoundRow {
  RowFn run;
  RowArgs args;
};
struct BoundRope {
  RopeFn run;
  RopeArgs args;
};
struct BoundStoreKv {
  StoreKvFn run;
  StoreKvArgs args;
  int32_t cache_group;
};
/// q and out: token 0, head 0; heads lie head_dim floats apart.
struct BoundAttention {
  KvArgs kv;
  AttentionShape shape;
  const float* q;
  int64_t q_stride;
  float* out;
  int64_t out_stride;
};
using BoundOp = std::variant<EmbedArgs, GatherArgs, BoundMatmul, BoundPrepare, BoundRow, BoundRope,
                             BoundStoreKv, BoundAttention>;

/// Empty when `op` can be bound, else what is missing.
std::string why_unsupported(const Program& program, const Op& op, const KernelTable& kernels);

/// Requires that why_unsupported() is empty.
BoundOp bind_op(const Op& op, const Bindings& bindings);

/// Runs a row operation (anything but matmul and attention) on rows [begin, end) of the step.
void run_rows(const BoundOp& op, const StepMeta& meta, int64_t begin, int64_t end);

}  // namespace quire::backend::cpu
