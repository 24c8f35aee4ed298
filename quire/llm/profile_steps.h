// StepProfiler: adds up where steps spend their time, operation by operation, apart for prefill and
// decode.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "quire/backend/cpu/step_profile.h"
#include "quire/backend/program.h"
#include "quire/sched/batch_plan.h"

namespace quire::llm {

/// A step that has just run. What it refers to is valid during the callback only.
struct StepRecord {
  const sched::BatchPlan& plan;
  const backend::Program& program;
  const std::vector<backend::cpu::Phase>& phases;
  const backend::cpu::StepProfile& forward;
  int64_t launch_ns = 0;          // steady clock
  backend::cpu::TimeSpan sample;  // reading the logits
};

/// kPrefill: some row brought more than one token. kDecode: one token a row.
enum class StepClass : uint8_t { kPrefill, kDecode };
inline constexpr int kNumStepClasses = 2;
std::string_view step_class_name(StepClass step_class);
StepClass class_of(const sched::BatchPlan& plan);

/// Sums over calls.
struct OpTotals {
  int64_t calls = 0;
  int64_t ns = 0;
  int64_t operations = 0;    // a multiply and an add count as two
  int64_t weight_bytes = 0;  // what must be touched once, whatever caches do (step_cost.h)
  int64_t act_bytes = 0;
  int64_t kv_bytes = 0;
  double ideal_ns = 0;  // at the ceilings; 0 where none are known

  int64_t bytes() const { return weight_bytes + act_bytes + kv_bytes; }
  void add(const OpTotals& other);
};

/// One line of a table: an operation of the program, or all of a kind.
struct ProfileLine {
  std::string name;
  std::string kind;  // "matmul int4 group 32 x int8", "attention"
  OpTotals totals;
};

/// What steps of one class took in all.
struct StepTotals {
  int64_t steps = 0;
  int64_t tokens = 0;
  int64_t step_ns = 0;     // launch to the end of sampling
  int64_t forward_ns = 0;  // the program
  int64_t sample_ns = 0;
  std::vector<ProfileLine> lines;  // by operation of the program
};

/// What the processor can do at most, to set times against. A figure that is 0 is not known.
struct RooflineCeilings {
  double memory_gbs = 0;  // weights and KV come from there
  double cache_gbs = 0;   // activations of few rows stay in it
  double fp32_gflops = 0;
  double bf16_gflops = 0;
  double int8_gops = 0;
};

/// Not thread-safe: observe() is called on the engine's thread, results are read when it is idle.
class StepProfiler {
 public:
  explicit StepProfiler(RooflineCeilings ceilings = {}) : ceilings_(ceilings) {}

  void observe(const StepRecord& record);
  const StepTotals& totals(StepClass step_class) const {
    return classes_[static_cast<size_t>(step_class)];
  }
  const RooflineCeilings& ceilings() const { return ceilings_; }

 private:
  RooflineCeilings ceilings_;
  std::array<StepTotals, kNumStepClasses> classes_;
};

/// The lines summed by kind of operation (matmuls by their kind of weight), most time first.
std::vector<ProfileLine> by_kind(const StepTotals& totals);

/// Steps, tokens and time, then a table: calls, time, share of the program, GB/s, GOP/s and, with
/// ceilings, the share of what the roofline allows. `by_line`: every operation of the program, in
/// its order.
std::string format_profile(const StepProfiler& profiler, StepClass step_class, bool by_line);

}  // namespace quire::llm
