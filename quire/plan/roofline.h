// Roofline: how fast every line of a program can be on a device, and so how long a step takes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "quire/backend/dryrun/step_cost.h"
#include "quire/plan/plan.h"

namespace quire::plan {

/// One line of the program under the roof.
struct LineTime {
  std::string name;
  backend::OpKind kind = backend::OpKind::kAdd;
  backend::ActType act = backend::ActType::kF32;
  int64_t operations = 0;
  int64_t bytes = 0;
  double intensity = 0;           // operations a byte
  double peak = 0;                // operations a second of this type
  double bandwidth = 0;           // bytes a second, of the levels its bytes come from
  double ceiling = 0;             // min(peak, bandwidth x intensity)
  double seconds = 0;             // at the ceiling
  double memory_seconds = 0;      // bytes / bandwidth
  double arithmetic_seconds = 0;  // operations / peak
  bool memory_bound = true;
  std::string level;  // where most of its bytes come from
};

/// A kind of lines, summed: "down_proj", "attention".
struct LineClass {
  std::string name;
  int64_t count = 0;
  LineTime sum;  // ceiling = operations / seconds
};

/// One step on all ranks, one after another where they are stages.
struct StepTime {
  int64_t tokens = 0;
  int64_t operations = 0;  // of all stages, one rank each
  int64_t bytes = 0;
  double compute_seconds = 0;   // all lines at their ceilings
  double overhead_seconds = 0;  // launches or barriers
  double link_seconds = 0;      // all-reduces, all-gathers, hand-overs
  double fast_seconds = 0;      // with the high reach of the device
  double slow_seconds = 0;      // with the low one
  std::vector<LineTime> lines;

  double middle() const { return (fast_seconds + slow_seconds) / 2; }
};

/// The time of a step. Requires a device with ceilings.
///   line    = max(operations / peak, bytes / bandwidth) at its ceiling; for the range each divided
///             by the device's reach, and added where the two do not overlap
///   reduce  = latency + 2 (n - 1) / n x bytes / link, two for each layer (after o_proj and
///             down_proj) and one for the embedding; the logits are gathered
///   stages  = tokens x hidden x element bytes over the link between each two
StepTime step_time(const Plan& plan, const backend::dryrun::StepShape& step);

/// Lines by what they are, in the order of the program.
std::vector<LineClass> classes_of(const std::vector<LineTime>& lines);

/// `batch` sequences with one new token each and `context` tokens of context, it included.
backend::dryrun::StepShape decode_step(int64_t batch, int64_t context);
/// One prompt's steps under the token budget.
std::vector<backend::dryrun::StepShape> prefill_steps(int64_t prompt, int64_t max_tokens);

}  // namespace quire::plan
