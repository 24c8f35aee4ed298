#include "quire/backend/cpu/bound_op.h"

#include <cstring>
#include <optional>

#include <fmt/format.h>

#include "quire/backend/cpu/packer.h"
#include "quire/base/check.h"

namespace quire::backend::cpu {
namespace {

const TensorDecl& tensor(const Program& program, int32_t index) {
  return program.tensors[static_cast<size_t>(index)];
}

/// A tensor's first row and the distance between rows in floats.
struct FloatRows {
  float* data = nullptr;
  int64_t stride = 0;
};

FloatRows float_rows(const Bindings& bindings, int32_t index) {
  if (index < 0) return {};
  const TensorDecl& t = tensor(*bindings.program, index);
  return {reinterpret_cast<float*>(bindings.arena + t.offset), t.row_bytes / 4};
}

ActType act_type(TensorForm form) {
  if (form == TensorForm::kPreparedBF16) return ActType::kBF16;
  return form == TensorForm::kPreparedI8 ? ActType::kI8 : ActType::kF32;
}

MatmulFn matmul_kernel(const KernelTable& kernels, const WeightSpec& spec, TensorForm form) {
  const std::optional<MatmulKind> kind = matmul_kind(spec, act_type(form));
  return kind ? kernels.matmul[*kind] : nullptr;
}

KvArgs kv_args(const Op& op, const Bindings& bindings) {
  const auto group_index = static_cast<size_t>(op.cache_group);
  const CacheGroupSpec& group = bindings.program->cache_groups[group_index];
  const KvSlab& slab = bindings.slabs[group_index];
  KvArgs kv{};
  kv.layer_base = reinterpret_cast<char*>(slab.data) + op.layer * slab.layer_stride;
  kv.block_bytes = group.block_layer_bytes();
  kv.page_bytes = group.page_bytes();
  kv.block_tokens = group.block_tokens;
  kv.num_kv_heads = group.num_kv_heads;
  kv.head_dim = group.head_dim;
  kv.padded_dim = group.padded_head_dim();
  kv.type = group.dtype == DType::kF32   ? KvType::kF32
            : group.dtype == DType::kF16 ? KvType::kF16
                                         : KvType::kBF16;
  return kv;
}

BoundMatmul bind_matmul(const Op& op, const Bindings& bindings) {
  const Program& program = *bindings.program;
  const TensorDecl& in = tensor(program, op.in[0]);
  const PackedWeight& weight = *program.weights[static_cast<size_t>(op.weight)];
  const FloatRows out = float_rows(bindings, op.out);
  BoundMatmul bound{matmul_kernel(*bindings.kernels, weight.spec, in.form), {}};
  MatmulArgs& args = bound.args;
  args.w = weight_args(weight);
  args.a = bindings.arena + in.offset;
  args.a_stride = in.row_bytes;
  if (in.form == TensorForm::kPreparedI8) {
    args.a_scales = prepared_scales_offset(in.cols);
    args.a_sums = prepared_sums_offset(in.cols, in.group);
  }
  args.out = out.data;
  args.out_stride = out.stride;
  if (op.vector >= 0) args.bias = program.vectors[static_cast<size_t>(op.vector)].data();
  args.slice_end = args.w.num_slices;
  return bound;
}

BoundPrepare bind_prepare(const Op& op, const Bindings& bindings) {
  const TensorDecl& out = tensor(*bindings.program, op.out);
  const FloatRows in = float_rows(bindings, op.in[0]);
  const bool int8 = out.form == TensorForm::kPreparedI8;
  BoundPrepare bound{int8 ? bindings.kernels->prepare_i8 : bindings.kernels->prepare_bf16, {}};
  bound.args.in = in.data;
  bound.args.in_stride = in.stride;
  bound.args.out = bindings.arena + out.offset;
  bound.args.out_stride = out.row_bytes;
  bound.args.cols = out.cols;
  if (int8) {
    bound.args.group = out.group;
    bound.args.scales = prepared_scales_offset(out.cols);
    bound.args.sums = prepared_sums_offset(out.cols, out.group);
  }
  return bound;
}

BoundRow bind_row(const Op& op, const Bindings& bindings, RowFn run) {
  const FloatRows a = float_rows(bindings, op.in[0]);
  const FloatRows b = float_rows(bindings, op.in[1]);
  const FloatRows out = float_rows(bindings, op.out);
  RowArgs args{};
  args.a = a.data;
  args.a_stride = a.stride;
  args.b = b.data;
  args.b_stride = b.stride;
  args.out = out.data;
  args.out_stride = out.stride;
  args.cols = tensor(*bindings.program, op.out).cols;
  if (op.vector >= 0)
    args.vector = bindings.program->vectors[static_cast<size_t>(op.vector)].data();
  args.epsilon = op.epsilon;
  return {run, args};
}

BoundRope bind_rope(const Op& op, const Bindings& bindings) {
  const FloatRows x = float_rows(bindings, op.in[0]);
  RopeArgs args{};
  args.x = x.data;
  args.stride = x.stride;
  args.cos_sin = bindings.rope_tables[static_cast<size_t>(op.vector)];
  args.cos_sin_stride = op.attention.head_dim;
  args.num_heads = op.attention.num_heads;
  args.head_dim = op.attention.head_dim;
  return {bindings.kernels->rope, args};
}

BoundStoreKv bind_store_kv(const Op& op, const Bindings& bindings) {
  const FloatRows k = float_rows(bindings, op.in[0]);
  const FloatRows v = float_rows(bindings, op.in[1]);
  StoreKvArgs args{};
  args.kv = kv_args(op, bindings);
  args.k = k.data;
  args.k_stride = k.stride;
  args.v = v.data;
  args.v_stride = v.stride;
  return {bindings.kernels->store_kv, args, op.cache_group};
}

std::string why_attention_unsupported(const Program& program, const Op& op) {
  const AttentionShape& shape = op.attention;
  const CacheGroupSpec& group = program.cache_groups[static_cast<size_t>(op.cache_group)];
  if (group.dtype != DType::kBF16 && group.dtype != DType::kF16 && group.dtype != DType::kF32) {
    return fmt::format("a KV cache of {}: bf16, fp16 and fp32 are supported",
                       dtype_name(group.dtype));
  }
  if (group.block_tokens <= 0 || group.block_tokens % 16 != 0) {
    return fmt::format("KV blocks of {} tokens: a multiple of 16 is needed", group.block_tokens);
  }
  if (shape.head_dim <= 0 || shape.head_dim % 2 != 0 || shape.head_dim > kMaxHeadDim) {
    return fmt::format("heads of {} dimensions: an even number up to {} is needed", shape.head_dim,
                       kMaxHeadDim);
  }
  if (shape.num_kv_heads <= 0 || shape.num_heads % shape.num_kv_heads != 0) {
    return fmt::format("{} heads over {} kv heads", shape.num_heads, shape.num_kv_heads);
  }
  if (shape.head_dim != group.head_dim || shape.num_kv_heads != group.num_kv_heads) {
    return "a KV shape other than its cache group's";
  }
  return {};
}

}  // namespace

std::string why_unsupported(const Program& program, const Op& op, const KernelTable& kernels) {
  switch (op.kind) {
    case OpKind::kMatmul: {
      const WeightSpec& spec = program.weights[static_cast<size_t>(op.weight)]->spec;
      const TensorDecl& in = tensor(program, op.in[0]);
      if (matmul_kernel(kernels, spec, in.form) == nullptr) {
        return "no kernel for this weight layout and activation type";
      }
      if (in.form == TensorForm::kPreparedI8 && in.group != spec.group) {
        return fmt::format("int8 activations by {} against weights by {}", in.group, spec.group);
      }
      return {};
    }
    case OpKind::kRope:
      return op.attention.head_dim % 2 == 0 ? "" : "rotary embedding of an odd dimension";
    case OpKind::kStoreKv:
    case OpKind::kAttention:
      return why_attention_unsupported(program, op);
    default:
      return {};
  }
}

BoundOp bind_op(const Op& op, const Bindings& bindings) {
  const KernelTable& kernels = *bindings.kernels;
  switch (op.kind) {
    case OpKind::kEmbed: {
      const FloatRows out = float_rows(bindings, op.out);
      return EmbedArgs{bindings.program->weights[static_cast<size_t>(op.weight)].get(), out.data,
                       out.stride};
    }
    case OpKind::kRmsNorm:
      return bind_row(op, bindings, kernels.rms_norm);
    case OpKind::kPrepare:
      return bind_prepare(op, bindings);
    case OpKind::kMatmul:
      return bind_matmul(op, bindings);
    case OpKind::kRope:
      return bind_rope(op, bindings);
    case OpKind::kStoreKv:
      return bind_store_kv(op, bindings);
    case OpKind::kAttention: {
      const FloatRows q = float_rows(bindings, op.in[0]);
      const FloatRows out = float_rows(bindings, op.out);
      return BoundAttention{
          kv_args(op, bindings), op.attention, q.data, q.stride, out.data, out.stride};
    }
    case OpKind::kGatedAct:
      return bind_row(op, bindings, kernels.gated_act);
    case OpKind::kAdd:
      return bind_row(op, bindings, kernels.add);
    case OpKind::kGatherRows: {
      const TensorDecl& in = tensor(*bindings.program, op.in[0]);
      const TensorDecl& out = tensor(*bindings.program, op.out);
      QUIRE_CHECK(in.row_bytes == out.row_bytes);
      return GatherArgs{bindings.arena + in.offset, bindings.arena + out.offset, in.row_bytes};
    }
  }
  QUIRE_CHECK_MSG(false, "an unknown operation");
}

namespace {

struct RowRunner {
  const StepMeta& meta;
  int64_t begin;
  int64_t end;

  int64_t rows() const { return end - begin; }

  void operator()(const EmbedArgs& op) const {
    for (int64_t t = begin; t < end; ++t) {
      unpack_row(*op.weight, meta.token_ids[static_cast<size_t>(t)], op.out + t * op.out_stride);
    }
  }
  void operator()(const GatherArgs& op) const {
    for (int64_t r = begin; r < end; ++r) {
      const int64_t source = meta.logits_rows[static_cast<size_t>(r)];
      std::memcpy(op.out + r * op.row_bytes, op.in + source * op.row_bytes,
                  static_cast<size_t>(op.row_bytes));
    }
  }
  void operator()(const BoundPrepare& op) const {
    PrepareArgs args = op.args;
    args.in += begin * args.in_stride;
    args.out = static_cast<std::byte*>(args.out) + begin * args.out_stride;
    args.rows = rows();
    op.run(args);
  }
  void operator()(const BoundRow& op) const {
    RowArgs args = op.args;
    args.a += begin * args.a_stride;
    if (args.b != nullptr) args.b += begin * args.b_stride;
    args.out += begin * args.out_stride;
    args.rows = rows();
    op.run(args);
  }
  void operator()(const BoundRope& op) const {
    RopeArgs args = op.args;
    args.x += begin * args.stride;
    args.cos_sin += begin * args.cos_sin_stride;
    args.rows = rows();
    op.run(args);
  }
  void operator()(const BoundStoreKv& op) const {
    StoreKvArgs args = op.args;
    args.k += begin * args.k_stride;
    args.v += begin * args.v_stride;
    args.slots = meta.groups[static_cast<size_t>(op.cache_group)].slots.data() + begin;
    args.rows = rows();
    op.run(args);
  }
  void operator()(const BoundMatmul& /*op*/) const {
    QUIRE_CHECK_MSG(false, "not a row operation");
  }
  void operator()(const BoundAttention& /*op*/) const {
    QUIRE_CHECK_MSG(false, "not a row operation");
  }
};

}  // namespace

void run_rows(const BoundOp& op, const StepMeta& meta, int64_t begin, int64_t end) {
  std::visit(RowRunner{meta, begin, end}, op);
}

}  // namespace quire::backend::cpu
