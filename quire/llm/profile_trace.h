// StepTrace: steps, phases of every worker and the scheduler's events, for Perfetto or
// chrome://tracing.
#pragma once

#include <cstdint>
#include <ostream>
#include <string>
#include <vector>

#include "quire/llm/profile_steps.h"

namespace quire::llm {

/// Collects steps and writes them in the Trace Event Format (an object with "traceEvents"; times in
/// microseconds from the first event). Thread 0 has the steps, each with "forward" and "sample"
/// inside, and between them "profile", what keeping the record took, and "schedule"; thread 1 + w
/// what worker w did in each phase, without its waits. Rows that start, resume after a preemption
/// or finish, and copied blocks, are instant events; tokens and rows of a step are counters.
class StepTrace {
 public:
  /// Steps beyond `max_steps` are left out: a trace of a decode step is some 50 KB.
  explicit StepTrace(int64_t max_steps = 400) : max_steps_(max_steps) {}

  void observe(const StepRecord& record);
  int64_t num_steps() const { return num_steps_; }
  /// Steps seen, but not kept.
  int64_t num_left_out() const { return num_left_out_; }
  void write(std::ostream& out) const;

 private:
  /// A complete event, except for what all have.
  struct Slice {
    int32_t thread = 0;
    int64_t begin_ns = 0;
    int64_t end_ns = 0;
    int32_t name = 0;  // index into names_
    std::string args;  // JSON members, or empty
  };
  struct Mark {  // an instant or a counter
    char phase = 'i';
    int64_t at_ns = 0;
    std::string name;
    std::string args;
  };

  int32_t name_id(const std::string& name);
  void add_slice(const backend::cpu::TimeSpan& span, const std::string& name,
                 std::string args = {});
  void add_events(const StepRecord& record);
  void add_phases(const StepRecord& record);

  int64_t max_steps_;
  int64_t num_steps_ = 0;
  int64_t num_left_out_ = 0;
  int num_workers_ = 0;
  int64_t last_end_ns_ = 0;
  std::vector<std::string> names_;
  std::vector<int32_t> phase_ids_;  // by phase of the program, once known: index into names_
  std::vector<Slice> slices_;
  std::vector<Mark> marks_;
};

}  // namespace quire::llm
