#include "quire/backend/cpu/walker.h"

#include <algorithm>
#include <map>
#include <utility>

#include "quire/base/check.h"

namespace quire::backend::cpu {
namespace {

// Rows a chain is run over at once: few enough that what one operation writes is still in the
// cache for the next.
constexpr int64_t kChainRows = 16;
// Matmuls of more rows are also cut by rows, so that few panels can be shared out evenly.
constexpr int64_t kRowBlock = 96;
// Panels an item has: what a kernel computes at once, single ones for few rows where panels are
// read from memory and an even cut matters more.
constexpr int64_t kTilePanels = 4;
constexpr int64_t kFewRows = 8;

int64_t ceil_div(int64_t a, int64_t b) {
  return (a + b - 1) / b;
}

/// Distinct (inverse frequencies, head_dim) of the program, each with room for every token.
std::map<int32_t, int32_t> rope_vectors(const Program& program) {
  std::map<int32_t, int32_t> head_dim_of;
  for (const Op& op : program.ops) {
    if (op.kind == OpKind::kRope) head_dim_of[op.vector] = op.attention.head_dim;
  }
  return head_dim_of;
}

int64_t rope_table_bytes(const Program& program, int32_t head_dim) {
  return ceil_div(program.max_tokens * head_dim * 4, 64) * 64;
}

/// How one matmul of a phase is cut: item = tile * row_blocks + row_block.
struct MatmulCut {
  int64_t rows;
  int64_t tile_panels;
  int64_t row_blocks;

  explicit MatmulCut(int64_t num_rows)
      : rows(num_rows),
        tile_panels(num_rows <= kFewRows ? 1 : kTilePanels),
        row_blocks(ceil_div(num_rows, kRowBlock)) {}

  int64_t items(const MatmulArgs& args) const {
    return ceil_div(num_panels(args.w.out), tile_panels) * row_blocks;
  }
  /// Tiles [tile_begin, tile_end) for row blocks [block_begin, block_end).
  void call(const BoundMatmul& op, int64_t tile_begin, int64_t tile_end, int64_t block_begin,
            int64_t block_end) const {
    if (tile_begin == tile_end || block_begin == block_end) return;
    MatmulArgs args = op.args;
    const int64_t row = block_begin * kRowBlock;
    args.panel_begin = tile_begin * tile_panels;
    args.panel_end = std::min(tile_end * tile_panels, num_panels(args.w.out));
    args.a = static_cast<const std::byte*>(args.a) + row * args.a_stride;
    args.out += row * args.out_stride;
    args.rows = std::min(block_end * kRowBlock, rows) - row;
    op.run(args);
  }
  /// Items [begin, end): a part of the first tile's rows, whole tiles, a part of the last one's.
  void run(const BoundMatmul& op, int64_t begin, int64_t end) const {
    const int64_t first = begin / row_blocks;
    const int64_t last = end / row_blocks;
    if (first == last) {
      call(op, first, first + 1, begin - first * row_blocks, end - first * row_blocks);
      return;
    }
    const int64_t whole = ceil_div(begin, row_blocks);
    if (whole != first) call(op, first, whole, begin - first * row_blocks, row_blocks);
    call(op, whole, last, 0, row_blocks);
    if (last * row_blocks != end) call(op, last, last + 1, 0, end - last * row_blocks);
  }
};

}  // namespace

int64_t Walker::scratch_bytes(const Program& program, int num_workers) {
  int64_t bytes =
      AttentionRunner::shared_bytes(program) + num_workers * AttentionRunner::worker_bytes(program);
  for (const auto& [vector, head_dim] : rope_vectors(program)) {
    bytes += rope_table_bytes(program, head_dim);
  }
  return bytes;
}

Walker::Walker(std::shared_ptr<const Program> program, const KernelTable& kernels,
               std::span<const KvSlab> slabs, std::byte* arena, ThreadPool& pool,
               MemoryLedger* ledger, bool time_phases, bool profile_steps)
    : program_(std::move(program)),
      kernels_(kernels),
      pool_(pool),
      phases_(make_schedule(*program_)),
      scratch_(scratch_bytes(*program_, pool.num_workers()), MemoryTag::kArena, ledger),
      ranges_(pool.num_workers()),
      time_phases_(time_phases || profile_steps) {
  bind(slabs, arena);
  unit_starts_.reserve(static_cast<size_t>(program_->max_tokens) + 1);
  if (time_phases_) {
    for (const Phase& phase : phases_) times_.push_back({phase, 0, 0});
  }
  if (profile_steps) {
    timer_ = std::make_unique<StepTimer>(phases_, static_cast<int64_t>(program_->ops.size()),
                                         pool.num_workers());
  }
}

void Walker::bind(std::span<const KvSlab> slabs, std::byte* arena) {
  Bindings bindings{program_.get(), &kernels_, arena, slabs, {}};
  bindings.rope_tables.resize(program_->vectors.size());
  std::byte* next = scratch_.data();
  for (const auto& [vector, head_dim] : rope_vectors(*program_)) {
    auto* rows = reinterpret_cast<float*>(next);
    next += rope_table_bytes(*program_, head_dim);
    const auto index = static_cast<size_t>(vector);
    rope_tables_.push_back({program_->vectors[index].data(), rows, head_dim});
    bindings.rope_tables[index] = rows;
  }
  attention_ = std::make_unique<AttentionRunner>(*program_, kernels_, next);
  for (int32_t i = 0; i < static_cast<int32_t>(phases_.size()) && rope_phase_ < 0; ++i) {
    const Phase& phase = phases_[static_cast<size_t>(i)];
    if (phase.kind == Phase::Kind::kRows && phase.rows == Rows::kTokens) rope_phase_ = i;
  }
  for (const Op& op : program_->ops) {
    ops_.push_back(bind_op(op, bindings));
    plan_of_op_.push_back(-1);
    if (op.kind != OpKind::kAttention) continue;
    const auto same = [&](const AttentionPlan& plan) {
      return plan.cache_group() == op.cache_group && plan.shape().window == op.attention.window &&
             plan.shape().num_heads == op.attention.num_heads;
    };
    const auto found = std::find_if(plans_.begin(), plans_.end(), same);
    plan_of_op_.back() = static_cast<int32_t>(found - plans_.begin());
    if (found == plans_.end()) {
      plans_.emplace_back(op.attention, op.cache_group, program_->max_tokens, pool_.num_workers());
    }
  }
}

void Walker::reset_times() {
  for (PhaseTime& time : times_) time.nanoseconds = time.steps = 0;
}

int64_t Walker::num_rows(Rows rows) const {
  return rows == Rows::kTokens ? meta_->num_tokens() : meta_->num_logits();
}

void Walker::run(const StepMeta& meta) {
  QUIRE_CHECK(meta.num_tokens() <= program_->max_tokens);
  QUIRE_CHECK(meta.num_logits() <= program_->max_logits);
  meta_ = &meta;
  cut_units(meta);
  for (AttentionPlan& plan : plans_) plan.build(meta);
  if (timer_ != nullptr) timer_->begin_step();
  pool_.run([this](int worker, int /*num_workers*/) { work(worker); });
  if (timer_ != nullptr) timer_->end_step();
  phases_run_ += static_cast<uint32_t>(phases_.size());
}

/// Units are the smallest runs of tokens that row chains may be shared out by: a page's tokens stay
/// together, since store_kv writes them in order (see StoreKvArgs).
void Walker::cut_units(const StepMeta& meta) {
  unit_starts_.clear();
  for (size_t row = 0; row + 1 < meta.query_start.size(); ++row) {
    for (int32_t t = meta.query_start[row]; t < meta.query_start[row + 1]; ++t) {
      const bool page_start = meta.positions[static_cast<size_t>(t)] % 16 == 0;
      if (page_start || t == meta.query_start[row]) unit_starts_.push_back(t);
    }
  }
  unit_starts_.push_back(static_cast<int32_t>(meta.num_tokens()));
}

void Walker::work(int worker) {
  int64_t before = time_phases_ && worker == 0 ? steady_ns() : 0;
  for (size_t i = 0; i < phases_.size(); ++i) {
    const Phase& phase = phases_[i];
    const uint32_t number = phases_run_ + static_cast<uint32_t>(i) + 1;
    if (num_rows(phase.rows) == 0) continue;
    if (timer_ != nullptr) timer_->enter(i, worker);
    switch (phase.kind) {
      case Phase::Kind::kRows:
        work_rows(phase, number, worker);
        break;
      case Phase::Kind::kMatmuls:
        work_matmuls(phase, number, worker);
        break;
      case Phase::Kind::kAttention:
        work_attention(phase, number, worker);
        break;
    }
    if (timer_ != nullptr) timer_->leave(i, worker);
    if (i + 1 < phases_.size() || time_phases_) pool_.barrier();
    if (time_phases_ && worker == 0) {
      const int64_t now = steady_ns();
      times_[i].nanoseconds += now - std::exchange(before, now);
      ++times_[i].steps;
    }
  }
}

void Walker::work_rows(const Phase& phase, uint32_t number, int worker) {
  const bool by_unit = phase.rows == Rows::kTokens;
  const int64_t items =
      by_unit ? static_cast<int64_t>(unit_starts_.size()) - 1 : num_rows(phase.rows);
  const auto start_of = [&](int w) { return even_start(items, pool_.num_workers(), w); };
  while (true) {
    const ItemRange range = ranges_.take(worker, number, 1, start_of);
    if (range.begin == range.end) return;
    const int64_t begin = by_unit ? unit_starts_[static_cast<size_t>(range.begin)] : range.begin;
    const int64_t end = by_unit ? unit_starts_[static_cast<size_t>(range.end)] : range.end;
    for (int64_t row = begin; row < end; row += kChainRows) {
      run_chain(phase, row, std::min(row + kChainRows, end), worker);
    }
  }
}

void Walker::run_chain(const Phase& phase, int64_t begin, int64_t end, int worker) {
  if (&phase == phases_.data() + rope_phase_) {
    for (const RopeTable& table : rope_tables_) {
      kernels_.rope_table({meta_->positions.data() + begin, table.inverse_frequencies,
                           table.rows + begin * table.head_dim, table.head_dim, end - begin,
                           table.head_dim});
    }
  }
  for (int32_t op = phase.first_op; op < phase.last_op; ++op) {
    const StepTimer::Scope timing(timer_.get(), worker, op);
    run_rows(ops_[static_cast<size_t>(op)], *meta_, begin, end);
  }
}

void Walker::work_matmuls(const Phase& phase, uint32_t number, int worker) {
  const MatmulCut cut(num_rows(phase.rows));
  const auto matmul = [&](int32_t op) -> const BoundMatmul& {
    return std::get<BoundMatmul>(ops_[static_cast<size_t>(op)]);
  };
  int64_t items = 0;
  for (int32_t op = phase.first_op; op < phase.last_op; ++op) items += cut.items(matmul(op).args);
  const auto start_of = [&](int w) { return even_start(items, pool_.num_workers(), w); };
  const int64_t grain = cut.tile_panels == 1 ? kTilePanels : 1;
  while (true) {
    const ItemRange range = ranges_.take(worker, number, grain, start_of);
    if (range.begin == range.end) return;
    int64_t first = 0;  // item of the phase that is the operation's item 0
    for (int32_t op = phase.first_op; op < phase.last_op; ++op) {
      const int64_t count = cut.items(matmul(op).args);
      const int64_t begin = std::max(range.begin - first, int64_t{0});
      const int64_t end = std::min(range.end - first, count);
      if (begin < end) {
        const StepTimer::Scope timing(timer_.get(), worker, op);
        cut.run(matmul(op), begin, end);
      }
      first += count;
    }
  }
}

void Walker::work_attention(const Phase& phase, uint32_t number, int worker) {
  const auto op = static_cast<size_t>(phase.first_op);
  const auto& bound = std::get<BoundAttention>(ops_[op]);
  const AttentionPlan& plan = plans_[static_cast<size_t>(plan_of_op_[op])];
  const auto start_of = [&](int w) { return plan.start_of(w); };
  while (true) {
    const ItemRange range = ranges_.take(worker, number, 1, start_of);
    if (range.begin == range.end) return;
    for (int64_t i = range.begin; i < range.end; ++i) {
      attention_->run(bound, plan, plan.items()[static_cast<size_t>(i)], *meta_, worker);
    }
  }
}

}  // namespace quire::backend::cpu
