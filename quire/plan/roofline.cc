#include "quire/plan/roofline.h"

#include <algorithm>

#include "quire/backend/cpu/schedule.h"
#include "quire/base/check.h"

namespace quire::plan {
namespace {

using backend::ActType;
using backend::Op;
using backend::OpKind;
using backend::Program;
using backend::TensorForm;
using backend::dryrun::OpCost;
using backend::dryrun::StepShape;

/// Which peak holds for a line: that of the form in which its activations are held; attention's is
/// that of the KV cache.
ActType act_of(const Program& program, const Op& op) {
  if (op.kind == OpKind::kAttention) {
    const auto& group = program.cache_groups[static_cast<size_t>(op.cache_group)];
    // 16-bit pages of either kind meet the same units on a GPU; a CPU widens fp16.
    return group.dtype == DType::kBF16 ? ActType::kBF16 : ActType::kF32;
  }
  if (op.kind != OpKind::kMatmul) return ActType::kF32;
  switch (program.tensors[static_cast<size_t>(op.in[0])].form) {
    case TensorForm::kPreparedI8:
      return ActType::kI8;
    case TensorForm::kPreparedBF16:
      return ActType::kBF16;
    case TensorForm::kPlain:
      break;
  }
  return ActType::kF32;
}

/// The nearest level whose bandwidth is known and that holds `bytes`; else the memory.
const MemoryLevel& level_for(const Device& device, int64_t bytes) {
  for (const MemoryLevel& level : device.levels) {
    if (level.bytes_per_second > 0 && level.bytes >= bytes) return level;
  }
  return device.levels.back();
}

class StageTimer {
 public:
  StageTimer(const Device& device, const Program& program, const StepShape& step)
      : device_(device), program_(program), costs_(backend::dryrun::step_cost(program, step)) {
    // What every step reads anew stays near only if all of it fits there.
    int64_t resident = 0;
    for (const OpCost& cost : costs_) resident += cost.weight_bytes + cost.kv_bytes;
    resident_ = &level_for(device, resident);
  }

  void add_lines(StepTime& time) const {
    for (size_t i = 0; i < costs_.size(); ++i) {
      time.lines.push_back(line(program_.ops[i], costs_[i]));
    }
  }

 private:
  LineTime line(const Op& op, const OpCost& cost) const {
    LineTime line{.name = cost.name, .kind = cost.kind, .level = {}};
    line.act = act_of(program_, op);
    line.operations = cost.operations;
    line.bytes = cost.bytes();
    line.peak = device_.peak(line.act);
    if (line.bytes == 0) return line;
    const MemoryLevel& near = level_for(device_, cost.act_bytes);
    const int64_t far_bytes = cost.weight_bytes + cost.kv_bytes;
    const double move = static_cast<double>(far_bytes) / resident_->bytes_per_second +
                        static_cast<double>(cost.act_bytes) / near.bytes_per_second;
    line.level = far_bytes > cost.act_bytes ? resident_->name : near.name;
    line.intensity = static_cast<double>(line.operations) / static_cast<double>(line.bytes);
    line.bandwidth = static_cast<double>(line.bytes) / move;
    line.ceiling = std::min(line.peak, line.bandwidth * line.intensity);
    const double compute = static_cast<double>(line.operations) / line.peak;
    line.memory_bound = move >= compute;
    line.seconds = std::max(move, compute);
    line.memory_seconds = move;
    line.arithmetic_seconds = compute;
    return line;
  }

  const Device& device_;
  const Program& program_;
  std::vector<OpCost> costs_;
  const MemoryLevel* resident_;
};

double link_seconds(const Plan& plan, const StepShape& step) {
  const Device& device = plan.options.device;
  const auto tp = static_cast<double>(plan.options.record.tensor_parallel);
  const auto stages = static_cast<double>(plan.stages.size());
  if (tp * stages <= 1 || device.link.bytes_per_second <= 0) return 0;
  const double width = device.kind == Device::Kind::kGpu ? 2 : 4;
  const double hidden = static_cast<double>(step.num_tokens() * plan.model.config.hidden_size);
  const double bytes = hidden * width;
  const Link& link = device.link;
  double seconds = 0;
  if (tp > 1) {
    const double reduces = 2 * static_cast<double>(plan.model.config.num_layers) + 1;
    seconds += reduces * (link.latency_seconds + 2 * (tp - 1) / tp * bytes / link.bytes_per_second);
    const double logits =
        static_cast<double>(step.num_logits * plan.model.config.vocab_size) * 4 * (tp - 1) / tp;
    seconds += link.latency_seconds + logits / link.bytes_per_second;
  }
  seconds += (stages - 1) * (link.latency_seconds + bytes / link.bytes_per_second);
  return seconds;
}

/// Rows times inputs of all that matmuls multiply; several with the same activations share them.
int64_t matmul_inputs(const Program& program, const StepShape& step) {
  int64_t sum = 0;
  int32_t last = -1;
  for (const Op& op : program.ops) {
    if (op.kind != OpKind::kMatmul || op.in[0] == last) continue;
    last = op.in[0];
    const bool tokens = program.tensors[static_cast<size_t>(last)].rows == backend::Rows::kTokens;
    const int64_t rows = tokens ? step.num_tokens() : step.num_logits;
    sum += rows * program.weights[static_cast<size_t>(op.weight)]->spec.in;
  }
  return sum;
}

/// Launches on a GPU; on a CPU the start of each phase, and packing activations.
double overhead_seconds(const Device& device, const Program& program, const StepShape& step) {
  const bool gpu = device.kind == Device::Kind::kGpu;
  const size_t count = gpu ? program.ops.size() : backend::cpu::make_schedule(program).size();
  return device.operation_seconds * static_cast<double>(count) +
         device.input_seconds * static_cast<double>(matmul_inputs(program, step));
}

/// "layers.3.mlp.down_proj" is a down_proj.
std::string class_of(const std::string& name) {
  const size_t dot = name.rfind('.');
  return dot == std::string::npos ? name : name.substr(dot + 1);
}

}  // namespace

StepTime step_time(const Plan& plan, const StepShape& step) {
  const Device& device = plan.options.device;
  QUIRE_CHECK(device.has_ceilings());
  StepTime time;
  time.tokens = step.num_tokens();
  for (const StageProgram& stage : plan.stages) {
    StageTimer(device, stage.program, step).add_lines(time);
    time.overhead_seconds += overhead_seconds(device, stage.program, step);
  }
  for (const LineTime& line : time.lines) {
    time.operations += line.operations;
    time.bytes += line.bytes;
    time.compute_seconds += line.seconds;
  }
  time.link_seconds = link_seconds(plan, step);
  const auto with = [&](double bandwidth, double peak) {
    double seconds = time.overhead_seconds + time.link_seconds;
    for (const LineTime& line : time.lines) {
      const double move = line.memory_seconds / bandwidth;
      const double compute = line.arithmetic_seconds / peak;
      seconds += std::max(move, compute) + (1 - device.overlap) * std::min(move, compute);
    }
    return seconds;
  };
  time.fast_seconds = with(device.bandwidth.high, device.compute.high);
  time.slow_seconds = with(device.bandwidth.low, device.compute.low);
  return time;
}

std::vector<LineClass> classes_of(const std::vector<LineTime>& lines) {
  std::vector<LineClass> classes;
  for (const LineTime& line : lines) {
    const std::string name = class_of(line.name);
    auto found = std::find_if(classes.begin(), classes.end(), [&](const LineClass& each) {
      return each.name == name && each.sum.act == line.act;
    });
    if (found == classes.end()) {
      classes.push_back({.name = name, .count = 0, .sum = {}});
      found = classes.end() - 1;
      found->sum = line;
      found->sum.name = name;
      found->sum.operations = found->sum.bytes = 0;
      found->sum.seconds = 0;
    }
    ++found->count;
    found->sum.operations += line.operations;
    found->sum.bytes += line.bytes;
    found->sum.seconds += line.seconds;
  }
  for (LineClass& each : classes) {
    LineTime& sum = each.sum;
    if (sum.bytes == 0 || sum.seconds <= 0) continue;
    sum.intensity = static_cast<double>(sum.operations) / static_cast<double>(sum.bytes);
    sum.ceiling = static_cast<double>(sum.operations) / sum.seconds;
  }
  return classes;
}

StepShape decode_step(int64_t batch, int64_t context) {
  StepShape step;
  step.rows.assign(static_cast<size_t>(batch), {.new_tokens = 1, .context_len = context});
  step.num_logits = batch;
  return step;
}

std::vector<StepShape> prefill_steps(int64_t prompt, int64_t max_tokens) {
  std::vector<StepShape> steps;
  for (int64_t done = 0; done < prompt;) {
    const int64_t count = std::min(max_tokens, prompt - done);
    done += count;
    steps.push_back({.rows = {{.new_tokens = count, .context_len = done}},
                     .num_logits = done == prompt ? 1 : 0});
  }
  return steps;
}

}  // namespace quire::plan
