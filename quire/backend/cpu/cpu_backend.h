// CpuBackend: runs programs on the processors of this machine with the kernels of one instruction
// set.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "quire/backend/backend.h"
#include "quire/backend/cpu/levels.h"
#include "quire/backend/cpu/walker.h"
#include "quire/base/memory_ledger.h"
#include "quire/base/thread_pool.h"

namespace quire::backend::cpu {

/// To be raised whenever a kernel's rounding, an order of summation or the layout of a KV page
/// changes: KV caches that earlier versions kept are then of no use.
inline constexpr int kNumbersVersion = 1;

class CpuBackend : public Backend {
 public:
  struct Options {
    int num_threads = 0;    // 0 = default_thread_count()
    std::vector<int> cpus;  // worker i is bound to cpus[i]; empty = unbound
    Level level = chosen_level();
    MemoryLedger* ledger = nullptr;  // may be null; must outlive the backend
    /// Adds up where steps spend their time, see op_times(). QUIRE_TRACE=1 in the environment does
    /// too, and prints op_times_table() to stderr at the end.
    bool time_ops = false;
    /// Keeps where each step spent its time, see last_step(): a clock is read around every
    /// operation.
    bool profile_steps = false;
    /// For tests: see Walker::Options::on_claim.
    std::function<void(int worker, bool opened)> on_claim = {};
  };

  explicit CpuBackend(Options options);
  ~CpuBackend() override;

  std::string_view name() const override { return "cpu"; }
  std::string unsupported(const Program& program, const Op& op) const override;
  ActType preferred_activation(const WeightSpec& spec) const override;
  std::shared_ptr<const PackedWeight> pack(const WeightReader& reader) override;

  /// Throws LoadError naming the first operation that is unsupported.
  void load(std::shared_ptr<const Program> program, std::span<const KvSlab> slabs) override;
  void unload() override { walker_.reset(); }
  void copy_blocks(std::span<const BlockCopy> copies) override;
  /// Runs the whole step: the calling thread is worker 0. wait() has nothing left to do.
  void launch(const StepMeta& meta) override;
  void wait() override {}
  const float* logits() const override { return logits_; }
  int64_t logits_stride() const override { return logits_stride_; }
  void parallel(const std::function<void(int, int)>& fn) override;
  int num_workers() const override { return pool_.num_workers(); }

  /// Bytes load() takes for `program` beside arena_bytes: rotary tables, attention's partials.
  int64_t scratch_bytes(const Program& program) const;
  /// Bytes the workers keep to themselves beside it: each one's matmul scratch, made by its first
  /// step.
  int64_t worker_scratch_bytes() const;
  /// Where the last step spent its time. Requires Options::profile_steps and load().
  const StepProfile& last_step() const;
  const std::vector<Phase>& phases() const;
  /// The step's phases (operations between two barriers) with the time they took so far. Empty
  /// unless Options::time_ops. Requires load().
  const std::vector<PhaseTime>& op_times() const;
  /// Times that a worker did again what one without a processor had begun. Requires load().
  int64_t num_rescues() const { return walker_->num_rescues(); }
  void reset_op_times();
  /// op_times() summed by the kinds of operations a phase holds, as a table for people.
  std::string op_times_table() const;

 private:
  const Options options_;
  const KernelTable kernels_;
  ThreadPool pool_;
  std::shared_ptr<const Program> program_;
  std::vector<KvSlab> slabs_;
  HugeBuffer arena_;
  LedgerEntry worker_scratch_;
  std::unique_ptr<Walker> walker_;
  const float* logits_ = nullptr;
  int64_t logits_stride_ = 0;
};

}  // namespace quire::backend::cpu
