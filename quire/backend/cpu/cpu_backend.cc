#include "quire/backend/cpu/cpu_backend.h"

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <iterator>
#include <map>
#include <utility>

#include <fmt/format.h>

#include "quire/backend/cpu/bound_op.h"
#include "quire/backend/cpu/generic/matmul_order.h"
#include "quire/backend/cpu/packer.h"
#include "quire/base/check.h"
#include "quire/base/error.h"

namespace quire::backend::cpu {
namespace {

/// QUIRE_TRACE in the environment: time every step and print the table at the end.
bool trace_wanted() {
  const char* value = std::getenv("QUIRE_TRACE");
  return value != nullptr && *value != '\0' && *value != '0';
}

/// One layer's part of a block copy.
void copy_layer(const KvSlab& slab, const BlockCopy& copy, int64_t layer, int64_t bytes) {
  const auto in_pool = [&](int64_t block) {
    return slab.data + layer * slab.layer_stride + block * bytes;
  };
  const auto in_swap = [&](int64_t block) {
    return slab.swap + block * slab.swap_block_stride + layer * bytes;
  };
  const bool from_swap = copy.kind == BlockCopy::Kind::kSwapIn;
  const bool to_swap = copy.kind == BlockCopy::Kind::kSwapOut;
  std::memcpy(to_swap ? in_swap(copy.destination) : in_pool(copy.destination),
              from_swap ? in_swap(copy.source) : in_pool(copy.source), static_cast<size_t>(bytes));
}

/// fn(i) for every i in [0, count) on all workers. What a call throws is thrown here, once all have
/// stopped.
void parallel_for(ThreadPool& pool, int64_t count, const std::function<void(int64_t)>& fn) {
  std::atomic<int64_t> next{0};
  std::atomic<bool> failed{false};
  std::exception_ptr error;
  pool.run([&](int /*worker*/, int /*num_workers*/) {
    try {
      for (int64_t i = next++; i < count && !failed; i = next++) fn(i);
    } catch (...) {
      if (!failed.exchange(true)) error = std::current_exception();
    }
  });
  if (error) std::rethrow_exception(error);
}

}  // namespace

CpuBackend::CpuBackend(Options options)
    : options_(std::move(options)),
      kernels_(kernel_table(options_.level)),
      pool_({.num_threads = options_.num_threads, .cpus = options_.cpus}) {}

CpuBackend::~CpuBackend() {
  if (trace_wanted() && walker_ != nullptr) fmt::print(stderr, "{}", op_times_table());
}

std::string CpuBackend::unsupported(const Program& program, const Op& op) const {
  return why_unsupported(program, op, kernels_);
}

// Coded weights meet int8 activations (mean KL divergence 2.6e-3 nats by groups of 32). Dense bf16
// weights meet bf16 ones where the processor multiplies them directly.
ActType CpuBackend::preferred_activation(const WeightSpec& spec) const {
  if (spec.layout != Layout::kDense) return ActType::kI8;
  const bool bf16 = spec.dtype == DType::kBF16 && options_.level >= Level::kAvx512;
  return bf16 ? ActType::kBF16 : ActType::kF32;
}

std::shared_ptr<const PackedWeight> CpuBackend::pack(const WeightReader& reader) {
  return pack_weight(reader, options_.ledger,
                     [this](int64_t count, const std::function<void(int64_t)>& fn) {
                       parallel_for(pool_, count, fn);
                     });
}

int64_t CpuBackend::scratch_bytes(const Program& program) const {
  return Walker::scratch_bytes(program, pool_.num_workers());
}

void CpuBackend::load(std::shared_ptr<const Program> program, std::span<const KvSlab> slabs) {
  QUIRE_CHECK(slabs.size() == program->cache_groups.size());
  for (const Op& op : program->ops) {
    const std::string missing = unsupported(*program, op);
    if (!missing.empty()) throw LoadError(op.name, fmt::format("the cpu backend has {}", missing));
  }
  walker_.reset();
  program_ = std::move(program);
  slabs_.assign(slabs.begin(), slabs.end());
  arena_ = HugeBuffer(program_->arena_bytes, MemoryTag::kArena, options_.ledger);
  walker_ =
      std::make_unique<Walker>(program_, kernels_, slabs_, arena_.data(), pool_, options_.ledger,
                               Walker::Options{.time_phases = options_.time_ops || trace_wanted(),
                                               .profile_steps = options_.profile_steps,
                                               .on_claim = options_.on_claim});
  worker_scratch_ = LedgerEntry(options_.ledger, MemoryTag::kWorkerScratch, worker_scratch_bytes());
  const TensorDecl& logits = program_->tensors[static_cast<size_t>(program_->logits)];
  logits_ = reinterpret_cast<const float*>(arena_.data() + logits.offset);
  logits_stride_ = logits.row_bytes / 4;
}

// A copy stays inside each layer, so every worker walks all copies in their order for the layers
// that are its own.
void CpuBackend::copy_blocks(std::span<const BlockCopy> copies) {
  pool_.run([&](int worker, int num_workers) {
    for (const BlockCopy& copy : copies) {
      const CacheGroupSpec& group = program_->cache_groups[static_cast<size_t>(copy.group)];
      const KvSlab& slab = slabs_[static_cast<size_t>(copy.group)];
      for (int64_t layer = worker; layer < group.num_layers; layer += num_workers) {
        copy_layer(slab, copy, layer, group.block_layer_bytes());
      }
    }
  });
}

void CpuBackend::launch(const StepMeta& meta) {
  walker_->run(meta);
}

void CpuBackend::parallel(const std::function<void(int, int)>& fn) {
  pool_.run(fn);
}

int64_t CpuBackend::worker_scratch_bytes() const {
  return pool_.num_workers() * static_cast<int64_t>(sizeof(MatmulScratch));
}

const StepProfile& CpuBackend::last_step() const {
  return walker_->last_step();
}

const std::vector<Phase>& CpuBackend::phases() const {
  return walker_->phases();
}

const std::vector<PhaseTime>& CpuBackend::op_times() const {
  return walker_->times();
}

void CpuBackend::reset_op_times() {
  walker_->reset_times();
}

std::string CpuBackend::op_times_table() const {
  std::map<std::string, int64_t> by_label;
  int64_t total = 0;
  int64_t steps = 1;
  for (const PhaseTime& time : op_times()) {
    by_label[phase_label(*program_, time.phase)] += time.nanoseconds;
    total += time.nanoseconds;
    steps = std::max(steps, time.steps);
  }
  std::vector<std::pair<int64_t, std::string>> rows;
  rows.reserve(by_label.size());
  for (const auto& [label, ns] : by_label) rows.emplace_back(ns, label);
  std::sort(rows.rbegin(), rows.rend());
  std::string table = "  us/step  share  operations\n";
  for (const auto& [ns, label] : rows) {
    fmt::format_to(
        std::back_inserter(table), "{:9.1f} {:5.1f}%  {}\n",
        static_cast<double>(ns) / 1e3 / static_cast<double>(steps),
        100.0 * static_cast<double>(ns) / static_cast<double>(std::max(total, int64_t{1})), label);
  }
  return table;
}

}  // namespace quire::backend::cpu
