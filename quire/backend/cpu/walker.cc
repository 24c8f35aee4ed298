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
// How long a claim may stay open, over twice what its items should take, before an idle worker
// computes it again; and what it may take where the idle worker has no measure of its own.
constexpr int64_t kGraceNs = 5'000;
constexpr int64_t kUnknownClaimNs = 30'000;
// Spinning longer than this for others loses more where they aren't running (the system favours
// threads that sleep) than a wake-up costs where they are.
constexpr int64_t kSpinNs = 30'000;
constexpr int kPausesPerClock = 64;
// A turn's low 28 bits are what WorkRanges tell phases apart by.
constexpr uint64_t kTurnsAReset = uint64_t{1} << 26;

int64_t ceil_div(int64_t a, int64_t b) {
  return (a + b - 1) / b;
}

/// 1, 2, 3, ...: no two walkers of a process have the same.
uint64_t next_number() {
  static std::atomic<uint64_t> last{0};
  return last.fetch_add(1, std::memory_order_relaxed) + 1;
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

}  // namespace

int64_t Walker::scratch_bytes(const Program& program, int num_workers) {
  int64_t bytes = num_workers * MatmulItems::kScratchFloats * 4 +
                  AttentionRunner::shared_bytes(program) +
                  num_workers * AttentionRunner::worker_bytes(program);
  for (const auto& [vector, head_dim] : rope_vectors(program)) {
    bytes += rope_table_bytes(program, head_dim);
  }
  return bytes;
}

Walker::Walker(std::shared_ptr<const Program> program, const KernelTable& kernels,
               std::span<const KvSlab> slabs, std::byte* arena, ThreadPool& pool,
               MemoryLedger* ledger, Options options)
    : program_(std::move(program)),
      kernels_(kernels),
      pool_(pool),
      options_(std::move(options)),
      number_(next_number()),
      phases_(make_schedule(*program_)),
      scratch_(scratch_bytes(*program_, pool.num_workers()), MemoryTag::kArena, ledger),
      turn_(phases_.size()),
      ranges_(pool.num_workers()),
      claims_(pool.num_workers()),
      paces_(static_cast<size_t>(pool.num_workers())) {
  bind(slabs, arena);
  ranges_.reset(turn_.value());
  unit_starts_.reserve(static_cast<size_t>(program_->max_tokens) + 1);
  if (options_.time_phases) {
    for (const Phase& phase : phases_) times_.push_back({phase, 0, 0});
  }
  if (options_.profile_steps) {
    timer_ = std::make_unique<StepTimer>(*program_, phases_, pool.num_workers());
  }
}

Walker::~Walker() {
  pool_.settle();
}

void Walker::bind(std::span<const KvSlab> slabs, std::byte* arena) {
  Bindings bindings{program_.get(), &kernels_, arena, slabs, {}};
  bindings.rope_tables.resize(program_->vectors.size());
  matmul_scratch_ = reinterpret_cast<float*>(scratch_.data());
  std::byte* next = scratch_.data() + pool_.num_workers() * MatmulItems::kScratchFloats * 4;
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

void Walker::run(const StepMeta& meta) {
  QUIRE_CHECK(meta.num_tokens() <= program_->max_tokens);
  QUIRE_CHECK(meta.num_logits() <= program_->max_logits);
  meta_ = &meta;
  rows_[static_cast<size_t>(Rows::kTokens)].store(meta.num_tokens(), std::memory_order_relaxed);
  rows_[static_cast<size_t>(Rows::kLogits)].store(meta.num_logits(), std::memory_order_relaxed);
  cut_units(meta);
  for (AttentionPlan& plan : plans_) plan.build(meta);
  const uint64_t turn = turn_.value();
  if (turn / kTurnsAReset != (turn + phases_.size() + 1) / kTurnsAReset) ranges_.reset(turn);
  if (options_.time_phases) phase_began_ns_ = steady_ns();
  if (timer_ != nullptr) timer_->begin_step();
  advance(turn);
  pool_.lead(crew_);
  if (timer_ != nullptr) timer_->end_step();
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
  num_units_.store(static_cast<int64_t>(unit_starts_.size()) - 1, std::memory_order_relaxed);
}

void Walker::work(int worker) {
  while (true) {
    const uint64_t turn = turn_.value();
    const auto index = static_cast<size_t>(turn % (phases_.size() + 1));
    if (index == phases_.size()) return;
    const Visit visit{phases_[index], turn, worker};
    switch (visit.phase.kind) {
      case Phase::Kind::kRows:
        work_rows(visit);
        break;
      case Phase::Kind::kMatmuls:
        work_matmuls(visit);
        break;
      case Phase::Kind::kAttention:
        work_attention(visit);
        break;
    }
    await(visit);
  }
}

// Everywhere below: items taken are real only if the phase is still under way afterwards. Then it
// stays so until they are counted, and what was read of the step before is right.

void Walker::work_rows(const Visit& visit) {
  const bool by_unit = visit.phase.rows == Rows::kTokens;
  const int64_t items =
      by_unit ? num_units_.load(std::memory_order_relaxed) : num_rows(visit.phase.rows);
  const auto start_of = [&](int w) { return even_start(items, pool_.num_workers(), w); };
  while (true) {
    const ItemRange range = ranges_.take(visit.worker, visit.turn, {}, start_of);
    if (range.empty() || !turn_.is(visit.turn)) return;
    const int64_t began_ns = began();
    const int64_t begin = by_unit ? unit_starts_[static_cast<size_t>(range.begin)] : range.begin;
    const int64_t end = by_unit ? unit_starts_[static_cast<size_t>(range.end)] : range.end;
    for (int64_t row = begin; row < end; row += kChainRows) {
      run_chain(visit, row, std::min(row + kChainRows, end));
    }
    note(visit, began_ns);
    finish(visit, range.size(), items);
  }
}

void Walker::note(const Visit& visit, int64_t began) {
  if (timer_ == nullptr) return;
  timer_->note(static_cast<size_t>(&visit.phase - phases_.data()), visit.worker,
               {began, steady_ns()});
}

void Walker::run_chain(const Visit& visit, int64_t begin, int64_t end) {
  const Phase& phase = visit.phase;
  if (&phase == phases_.data() + rope_phase_) {
    for (const RopeTable& table : rope_tables_) {
      kernels_.rope_table({meta_->positions.data() + begin, table.inverse_frequencies,
                           table.rows + begin * table.head_dim, table.head_dim, end - begin,
                           table.head_dim});
    }
  }
  for (int32_t op = phase.first_op; op < phase.last_op; ++op) {
    const StepTimer::Scope timing(timer_.get(), visit.worker, op);
    run_rows(ops_[static_cast<size_t>(op)], *meta_, begin, end);
  }
}

MatmulItems Walker::matmuls_of(const Phase& phase) const {
  const auto count = static_cast<size_t>(phase.last_op - phase.first_op);
  return {std::span(ops_).subspan(static_cast<size_t>(phase.first_op), count),
          num_rows(phase.rows)};
}

uint64_t Walker::key_of(const Visit& visit) const {
  return (number_ << 40) + (visit.turn & ((uint64_t{1} << 40) - 1));
}

float* Walker::matmul_scratch(int worker) const {
  return matmul_scratch_ + worker * MatmulItems::kScratchFloats;
}

void Walker::work_matmuls(const Visit& visit) {
  const MatmulItems matmuls = matmuls_of(visit.phase);
  const int workers = pool_.num_workers();
  const auto start_of = [&](int w) { return even_start(matmuls.size(), workers, w); };
  float* scratch = matmul_scratch(visit.worker);
  while (true) {
    const Portion portion = matmuls.portion(workers);
    const ItemRange range = ranges_.take(visit.worker, visit.turn, portion, start_of);
    if (range.empty() || !turn_.is(visit.turn)) return;
    const int64_t began_ns = began();
    if (matmuls.rescuable() && workers > 1) {
      open_claim(visit, range);
      matmuls.compute(range, key_of(visit), scratch);
      if (!commit_claim(visit)) return;
      matmuls.commit(range, scratch);
    } else {
      matmuls.run(range, key_of(visit));
    }
    note(visit, began_ns);
    finish(visit, range.size(), matmuls.size());
  }
}

const AttentionPlan& Walker::plan_of(const Phase& phase) const {
  return plans_[static_cast<size_t>(plan_of_op_[static_cast<size_t>(phase.first_op)])];
}

void Walker::work_attention(const Visit& visit) {
  const auto& op = std::get<BoundAttention>(ops_[static_cast<size_t>(visit.phase.first_op)]);
  const AttentionPlan& plan = plan_of(visit.phase);
  const int workers = pool_.num_workers();
  const auto start_of = [&](int w) { return plan.start_of(w); };
  int64_t fetched = -1;  // item whose first keys were fetched with the one before
  while (true) {
    const ItemRange range = ranges_.take(visit.worker, visit.turn, {1, 1}, start_of);
    if (range.empty() || !turn_.is(visit.turn)) return;
    const int64_t began_ns = began();
    AttentionJob job = AttentionRunner::job_in_step(op, plan, range.begin, *meta_);
    job.keys_fetched = range.begin == fetched;
    NextPages next;
    if (range.end < plan.start_of(visit.worker + 1)) {
      fetched = range.end;
      const AttentionJob follows = AttentionRunner::job_in_step(op, plan, fetched, *meta_);
      next = AttentionRunner::pages_of(op, follows, follows.item.split_begin);
    }
    const bool claimed = workers > 1 && attention_->keep(job, op, visit.worker);
    if (claimed) open_claim(visit, range);
    attention_->compute(op, job, next, visit.worker);
    if (claimed && !commit_claim(visit)) return;
    attention_->commit(op, plan, job, visit.worker);
    note(visit, began_ns);
    finish(visit, range.size(), plan.start_of(workers));
  }
}

void Walker::open_claim(const Visit& visit, const ItemRange& items) {
  Pace& pace = paces_[static_cast<size_t>(visit.worker)];
  const int64_t now = steady_ns();
  if (pace.turn == visit.turn && pace.items > 0) {
    pace.ns_an_item = static_cast<double>(now - pace.began_ns) / static_cast<double>(pace.items);
  } else {
    pace.ns_an_item = 0;
  }
  pace.turn = visit.turn;
  pace.began_ns = now;
  pace.items = items.size();
  claims_.open(visit.worker, visit.turn, now, items);
  if (options_.on_claim) options_.on_claim(visit.worker, true);
}

bool Walker::commit_claim(const Visit& visit) {
  const bool mine = claims_.commit(visit.worker);
  if (options_.on_claim) options_.on_claim(visit.worker, false);
  return mine;
}

void Walker::finish(const Visit& visit, int64_t count, int64_t all) {
  if (done_.fetch_add(count, std::memory_order_acq_rel) + count != all) return;
  done_.store(0, std::memory_order_relaxed);
  if (options_.time_phases) {
    const int64_t now = steady_ns();
    PhaseTime& time = times_[static_cast<size_t>(&visit.phase - phases_.data())];
    time.nanoseconds += now - std::exchange(phase_began_ns_, now);
    ++time.steps;
  }
  advance(visit.turn);
}

/// Begins the next phase that has rows, or ends the step.
void Walker::advance(uint64_t turn) {
  const size_t turns = phases_.size() + 1;
  do {
    ++turn;
  } while (turn % turns != phases_.size() && num_rows(phases_[turn % turns].rows) == 0);
  turn_.set(turn);
}

/// Returns when the phase has ended; makes itself useful meanwhile.
void Walker::await(const Visit& visit) {
  int64_t began = 0;
  while (true) {
    for (int i = 0; i < kPausesPerClock; ++i) {
      if (turn_.value() != visit.turn) return;
      pause_cpu();
    }
    const int64_t now = steady_ns();
    if (began == 0) began = now;
    if (rescue(visit, now) == Rescue::kNothing && now - began > kSpinNs) {
      turn_.sleep(visit.turn);
      return;
    }
  }
}

/// Computes again what another worker has been at for too long.
Walker::Rescue Walker::rescue(const Visit& visit, int64_t now) {
  if constexpr (!kRescues) return Rescue::kNothing;
  const Pace& pace = paces_[static_cast<size_t>(visit.worker)];
  const int workers = pool_.num_workers();
  Rescue result = Rescue::kNothing;
  for (int i = 1; i < workers; ++i) {
    const int owner = (visit.worker + i) % workers;
    ClaimBoard::Sight sight;
    if (!claims_.look(owner, visit.turn, sight)) continue;
    const bool known = pace.turn == visit.turn && pace.ns_an_item > 0;
    const auto usual =
        known ? static_cast<int64_t>(pace.ns_an_item * static_cast<double>(sight.items.size()))
              : kUnknownClaimNs;
    if (now - sight.opened_ns < 2 * usual + kGraceNs) {
      result = Rescue::kTooEarly;
      continue;
    }
    const bool rescued = visit.phase.kind == Phase::Kind::kMatmuls
                             ? rescue_matmuls(visit, owner, sight)
                             : rescue_attention(visit, owner, sight);
    if (rescued) rescues_.fetch_add(1, std::memory_order_relaxed);
    return Rescue::kDone;
  }
  return result;
}

bool Walker::rescue_matmuls(const Visit& visit, int owner, const ClaimBoard::Sight& sight) {
  const MatmulItems matmuls = matmuls_of(visit.phase);
  if (!claims_.still_open(owner, sight)) return false;
  const int64_t began_ns = began();
  float* scratch = matmul_scratch(visit.worker);
  matmuls.compute(sight.items, key_of(visit), scratch);
  if (!claims_.commit(owner, sight)) return false;
  matmuls.commit(sight.items, scratch);
  note(visit, began_ns);
  finish(visit, sight.items.size(), matmuls.size());
  return true;
}

bool Walker::rescue_attention(const Visit& visit, int owner, const ClaimBoard::Sight& sight) {
  const auto& op = std::get<BoundAttention>(ops_[static_cast<size_t>(visit.phase.first_op)]);
  const AttentionPlan& plan = plan_of(visit.phase);
  const AttentionJob job =
      attention_->copy_of_kept(op, plan, sight.items.begin, owner, visit.worker);
  if (!claims_.still_open(owner, sight)) return false;
  const int64_t began_ns = began();
  attention_->compute(op, job, {}, visit.worker);
  if (!claims_.commit(owner, sight)) return false;
  attention_->commit(op, plan, job, visit.worker);
  note(visit, began_ns);
  finish(visit, sight.items.size(), plan.start_of(pool_.num_workers()));
  return true;
}

}  // namespace quire::backend::cpu
