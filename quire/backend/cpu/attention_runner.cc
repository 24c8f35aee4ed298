#include "quire/backend/cpu/attention_runner.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <limits>

namespace quire::backend::cpu {
namespace {

// Blocks a job may have and still be kept: 65,536 tokens of context in blocks of 16.
constexpr int64_t kKeptBlocks = 4096;
constexpr int64_t kPageTokens = 16;

int64_t round_up_to_line(int64_t bytes) {
  return (bytes + 63) / 64 * 64;
}

int64_t partials_bytes(int64_t rows, int32_t dim) {
  return round_up_to_line(rows * dim * 4) + 2 * round_up_to_line(rows * 4);
}

/// What a row takes in memory: whole vectors.
int32_t padded_dim_of(const AttentionShape& shape) {
  return (shape.head_dim + 15) / 16 * 16;
}

int64_t group_of(const AttentionShape& shape) {
  return shape.num_heads / shape.num_kv_heads;
}

/// Blocks of the sequence, [begin, end), that a kernel may look up for the item.
struct BlockRange {
  int32_t begin;
  int32_t end;

  BlockRange(const AttentionItem& item, const KvArgs& kv) {
    const int64_t context = int64_t{item.first_position} + item.num_tokens;
    const int64_t reach = item.split_end * kAttentionSplit + kAttentionReach;
    const int64_t tokens = std::min(context, reach);
    begin = static_cast<int32_t>(item.split_begin * kAttentionSplit / kv.block_tokens);
    end = static_cast<int32_t>((tokens + kv.block_tokens - 1) / kv.block_tokens);
  }
  size_t size() const { return static_cast<size_t>(end - begin); }
};

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
    return 2 * kKeptBlocks * 4 +
           2 * partials_bytes(AttentionPlan::tile_rows(shape), padded_dim_of(shape));
  });
}

int64_t AttentionRunner::shared_bytes(const Program& program) {
  return largest(program, [](const AttentionShape& shape) {
    return partials_bytes(AttentionPlan::shared_rows(shape), padded_dim_of(shape));
  });
}

AttentionRunner::AttentionRunner(const Program& program, const KernelTable& kernels,
                                 std::byte* scratch)
    : kernels_(kernels),
      shared_(scratch),
      workers_(scratch + shared_bytes(program)),
      worker_bytes_(worker_bytes(program)) {}

AttentionRunner::Partials AttentionRunner::partials_at(std::byte* memory, int64_t rows,
                                                       int32_t dim) const {
  std::byte* max = memory + round_up_to_line(rows * dim * 4);
  std::byte* sum = max + round_up_to_line(rows * 4);
  return {reinterpret_cast<float*>(memory), reinterpret_cast<float*>(max),
          reinterpret_cast<float*>(sum)};
}

int32_t* AttentionRunner::kept_blocks(int worker) const {
  return reinterpret_cast<int32_t*>(workers_ + worker * worker_bytes_);
}

int32_t* AttentionRunner::copied_blocks(int worker) const {
  return kept_blocks(worker) + kKeptBlocks;
}

AttentionRunner::Partials AttentionRunner::partial_of(const AttentionShape& shape,
                                                      int worker) const {
  std::byte* memory = workers_ + worker * worker_bytes_ + 2 * kKeptBlocks * 4;
  return partials_at(memory, AttentionPlan::tile_rows(shape), padded_dim_of(shape));
}

AttentionRunner::Partials AttentionRunner::state_of(const AttentionShape& shape, int worker) const {
  const int64_t rows = AttentionPlan::tile_rows(shape);
  const int32_t dim = padded_dim_of(shape);
  std::byte* memory = workers_ + worker * worker_bytes_ + 2 * kKeptBlocks * 4;
  return partials_at(memory + partials_bytes(rows, dim), rows, dim);
}

AttentionRunner::Partials AttentionRunner::shared_partial(const AttentionShape& shape,
                                                          const SharedTile& tile, int64_t rows,
                                                          int32_t split) const {
  const Partials all =
      partials_at(shared_, AttentionPlan::shared_rows(shape), padded_dim_of(shape));
  const int64_t row = tile.first_partial + (split - tile.split_begin) * rows;
  return {all.out + row * padded_dim_of(shape), all.max + row, all.sum + row};
}

void AttentionRunner::clear(const Partials& state, int64_t rows, int32_t dim) const {
  std::memset(state.out, 0, static_cast<size_t>(rows * dim) * 4);
  std::memset(state.sum, 0, static_cast<size_t>(rows) * 4);
  std::fill_n(state.max, rows, -std::numeric_limits<float>::infinity());
}

void AttentionRunner::fold(const Partials& from, const Partials& into, int64_t rows,
                           int32_t dim) const {
  kernels_.fold({from.out, from.max, from.sum, into.out, into.max, into.sum, rows, dim});
}

AttentionJob AttentionRunner::job_in_step(const BoundAttention& op, const AttentionPlan& plan,
                                          int64_t index, const StepMeta& meta) {
  AttentionJob job;
  job.item = plan.items()[static_cast<size_t>(index)];
  const GroupMeta& group = meta.groups[static_cast<size_t>(plan.cache_group())];
  job.first_block = BlockRange(job.item, op.kv).begin;
  job.blocks =
      group.block_tables.data() + int64_t{job.item.row} * group.table_width + job.first_block;
  return job;
}

// Others copy while the owner may already write its next job's blocks: hence atomic accesses. The
// fence lets no such write be seen before the end of the claim it belongs behind.
bool AttentionRunner::keep(AttentionJob& job, const BoundAttention& op, int worker) const {
  const BlockRange range(job.item, op.kv);
  if (range.size() > kKeptBlocks) return false;
  std::atomic_thread_fence(std::memory_order_release);
  int32_t* kept = kept_blocks(worker);
  for (size_t i = 0; i < range.size(); ++i) {
    std::atomic_ref(kept[i]).store(job.blocks[i], std::memory_order_relaxed);
  }
  job.blocks = kept;
  return true;
}

AttentionJob AttentionRunner::copy_of_kept(const BoundAttention& op, const AttentionPlan& plan,
                                           int64_t index, int owner, int worker) const {
  AttentionJob job;
  if (index >= static_cast<int64_t>(plan.items().size())) return job;
  job.item = plan.items()[static_cast<size_t>(index)];
  const BlockRange range(job.item, op.kv);
  int32_t* copy = copied_blocks(worker);
  for (size_t i = 0; i < std::min(range.size(), size_t{kKeptBlocks}); ++i) {
    copy[i] = std::atomic_ref(kept_blocks(owner)[i]).load(std::memory_order_relaxed);
  }
  job.blocks = copy;
  job.first_block = range.begin;
  return job;
}

NextPages AttentionRunner::pages_of(const BoundAttention& op, const AttentionJob& job,
                                    int32_t split) {
  NextPages next;
  const KvArgs& kv = op.kv;
  const int64_t context = int64_t{job.item.first_position} + job.item.num_tokens;
  const int64_t end = std::min(context, (split + 1) * kAttentionSplit);
  const int64_t pages_a_block = kv.block_tokens / kPageTokens;
  for (int64_t token = split * kAttentionSplit; token < end; token += kPageTokens) {
    const int64_t page = token / kPageTokens;
    const int64_t block = job.blocks[page / pages_a_block - job.first_block];
    next.pages[static_cast<size_t>(next.count++)] =
        kv.layer_base + block * kv.block_bytes +
        (page % pages_a_block * kv.num_kv_heads + job.item.kv_head) * kv.page_bytes;
  }
  return next;
}

void AttentionRunner::compute(const BoundAttention& op, const AttentionJob& job,
                              const NextPages& next, int worker) const {
  const AttentionShape& shape = op.shape;
  const AttentionItem& item = job.item;
  const int32_t dim = padded_dim_of(shape);
  const int64_t group = group_of(shape);
  const int64_t rows = item.num_tokens * group;
  const Partials partial = partial_of(shape, worker);
  const Partials state = state_of(shape, worker);

  AttentionArgs args{};
  args.kv = op.kv;
  args.block_table = job.blocks;
  args.first_block = job.first_block;
  args.kv_head = item.kv_head;
  args.heads_per_kv = static_cast<int32_t>(group);
  args.q = op.q + item.first_token * op.q_stride + item.kv_head * group * shape.head_dim;
  args.q_stride = op.q_stride;
  args.num_queries = item.num_tokens;
  args.first_position = item.first_position;
  args.window = shape.window;
  args.scale = shape.scale;
  args.soft_cap = shape.soft_cap;
  args.partial_out = partial.out;
  args.partial_max = partial.max;
  args.partial_sum = partial.sum;
  if (item.shared < 0) clear(state, rows, dim);
  args.keys_fetched = job.keys_fetched;
  for (int32_t split = item.split_begin; split < item.split_end; ++split) {
    const bool last = split + 1 == item.split_end;
    const NextPages follow = last ? next : pages_of(op, job, split + 1);
    args.split = split;
    args.next_pages = follow.pages.data();
    args.num_next_pages = follow.count;
    kernels_.attention(args);
    args.keys_fetched = true;
    if (item.shared < 0) fold(partial, state, rows, dim);
  }
}

void AttentionRunner::commit(const BoundAttention& op, const AttentionPlan& plan,
                             const AttentionJob& job, int worker) const {
  const AttentionShape& shape = op.shape;
  const AttentionItem& item = job.item;
  const int32_t dim = padded_dim_of(shape);
  const int64_t rows = item.num_tokens * group_of(shape);
  const Partials state = state_of(shape, worker);
  if (item.shared >= 0) {
    const SharedTile& tile = plan.shared(item.shared);
    const Partials from = partial_of(shape, worker);
    const Partials to = shared_partial(shape, tile, rows, item.split_begin);
    std::memcpy(to.out, from.out, static_cast<size_t>(rows * dim) * 4);
    std::memcpy(to.max, from.max, static_cast<size_t>(rows) * 4);
    std::memcpy(to.sum, from.sum, static_cast<size_t>(rows) * 4);
    if (!plan.finish_split(item.shared)) return;
    clear(state, rows, dim);
    for (int32_t i = 0; i < tile.num_splits; ++i) {
      fold(shared_partial(shape, tile, rows, tile.split_begin + i), state, rows, dim);
    }
  }
  finish(op, item, state);
}

void AttentionRunner::finish(const BoundAttention& op, const AttentionItem& item,
                             const Partials& state) const {
  const int32_t d = op.shape.head_dim;
  const int64_t group = group_of(op.shape);
  NormalizeArgs args{};
  args.state = state.out;
  args.sum = state.sum;
  args.rows = item.num_tokens * group;
  args.heads = static_cast<int32_t>(group);
  args.head_dim = d;
  args.padded_dim = padded_dim_of(op.shape);
  args.out = op.out + item.first_token * op.out_stride + item.kv_head * group * d;
  args.out_stride = op.out_stride;
  kernels_.normalize(args);
}

}  // namespace quire::backend::cpu
