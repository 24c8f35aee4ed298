#include "quire/backend/cpu/attention_runner.h"

#include <algorithm>
#include <cstring>
#include <limits>

namespace quire::backend::cpu {
namespace {

int64_t round_up_to_line(int64_t bytes) {
  return (bytes + 63) / 64 * 64;
}

int64_t partials_bytes(int64_t rows, int32_t head_dim) {
  return round_up_to_line(rows * head_dim * 4) + 2 * round_up_to_line(rows * 4);
}

template <typename BytesOf>
int64_t largest(const Program& program, BytesOf bytes_of) {
  int64_t bytes = 0;
  for (const Op& op : program.ops) {
    if (op.kind == OpKind::kAttention) bytes = std::max(bytes, bytes_of(op.attention));
  }
  return bytes;
}

}  // namespace

int64_t AttentionRunner::worker_bytes(const Program& program) {
  return largest(program, [](const AttentionShape& shape) {
    return 2 * partials_bytes(AttentionPlan::tile_rows(shape), shape.head_dim);
  });
}

int64_t AttentionRunner::shared_bytes(const Program& program) {
  return largest(program, [](const AttentionShape& shape) {
    return partials_bytes(AttentionPlan::shared_rows(shape), shape.head_dim);
  });
}

AttentionRunner::AttentionRunner(const Program& program, const KernelTable& kernels,
                                 std::byte* scratch)
    : kernels_(kernels),
      shared_(scratch),
      workers_(scratch + shared_bytes(program)),
      worker_bytes_(worker_bytes(program)) {}

AttentionRunner::Partials AttentionRunner::partials_at(std::byte* memory, int64_t rows,
                                                       int32_t head_dim) const {
  std::byte* max = memory + round_up_to_line(rows * head_dim * 4);
  std::byte* sum = max + round_up_to_line(rows * 4);
  return {reinterpret_cast<float*>(memory), reinterpret_cast<float*>(max),
          reinterpret_cast<float*>(sum)};
}

void AttentionRunner::clear(const Partials& state, int64_t rows, int32_t head_dim) const {
  std::memset(state.out, 0, static_cast<size_t>(rows * head_dim) * 4);
  std::memset(state.sum, 0, static_cast<size_t>(rows) * 4);
  std::fill_n(state.max, rows, -std::numeric_limits<float>::infinity());
}

void AttentionRunner::run(const BoundAttention& op, const AttentionPlan& plan,
                          const AttentionItem& item, const StepMeta& meta, int worker) const {
  const AttentionShape& shape = op.shape;
  const int32_t d = shape.head_dim;
  const int32_t group = shape.num_heads / shape.num_kv_heads;
  const int64_t rows = int64_t{item.num_tokens} * group;
  const GroupMeta& group_meta = meta.groups[static_cast<size_t>(plan.cache_group())];
  std::byte* scratch = workers_ + worker * worker_bytes_;
  const int64_t tile_rows = AttentionPlan::tile_rows(shape);
  Partials partial = partials_at(scratch, tile_rows, d);
  const Partials state = partials_at(scratch + partials_bytes(tile_rows, d), tile_rows, d);
  clear(state, rows, d);

  AttentionArgs args{};
  args.kv = op.kv;
  args.block_table = group_meta.block_tables.data() + int64_t{item.row} * group_meta.table_width;
  args.kv_head = item.kv_head;
  args.heads_per_kv = group;
  args.q = op.q + item.first_token * op.q_stride + int64_t{item.kv_head} * group * d;
  args.q_stride = op.q_stride;
  args.num_queries = item.num_tokens;
  args.first_position = item.first_position;
  args.window = shape.window;
  args.scale = shape.scale;

  const auto fold = [&](const Partials& from) {
    kernels_.fold({from.out, from.max, from.sum, state.out, state.max, state.sum, rows, d});
  };
  const auto shared_partial = [&](const SharedTile& tile, int32_t split) {
    const Partials all = partials_at(shared_, AttentionPlan::shared_rows(shape), d);
    const int64_t row = tile.first_partial + (split - tile.split_begin) * rows;
    return Partials{all.out + row * d, all.max + row, all.sum + row};
  };
  if (item.shared >= 0) partial = shared_partial(plan.shared(item.shared), item.split_begin);
  args.partial_out = partial.out;
  args.partial_max = partial.max;
  args.partial_sum = partial.sum;
  for (int32_t split = item.split_begin; split < item.split_end; ++split) {
    args.split = split;
    kernels_.attention(args);
    if (item.shared < 0) fold(partial);
  }
  if (item.shared >= 0) {
    if (!plan.finish_split(item.shared)) return;
    const SharedTile& tile = plan.shared(item.shared);
    for (int32_t i = 0; i < tile.num_splits; ++i) fold(shared_partial(tile, tile.split_begin + i));
  }
  finish(op, item, state);
}

void AttentionRunner::finish(const BoundAttention& op, const AttentionItem& item,
                             const Partials& state) const {
  const int32_t d = op.shape.head_dim;
  const int32_t group = op.shape.num_heads / op.shape.num_kv_heads;
  NormalizeArgs args{};
  args.state = state.out;
  args.sum = state.sum;
  args.rows = int64_t{item.num_tokens} * group;
  args.heads = group;
  args.head_dim = d;
  args.out = op.out + item.first_token * op.out_stride + int64_t{item.kv_head} * group * d;
  args.out_stride = op.out_stride;
  kernels_.normalize(args);
}

}  // namespace quire::backend::cpu
