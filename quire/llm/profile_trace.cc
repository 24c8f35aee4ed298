#include "quire/llm/profile_trace.h"

#include <algorithm>
#include <limits>

#include <fmt/format.h>
#include <fmt/ostream.h>

namespace quire::llm {
namespace {

using backend::cpu::TimeSpan;

/// As a JSON string. Names of operations come from the program, those of its weights from a file.
std::string quoted(const std::string& text) {
  std::string json = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      json += '\\';
      json += c;
    } else if (static_cast<unsigned char>(c) < 0x20) {
      json += fmt::format("\\u{:04x}", static_cast<int>(c));
    } else {
      json += c;
    }
  }
  return json + "\"";
}

/// "layers.3.mlp: add + rms_norm + prepare": where the phase's first operation stands, then what it
/// holds.
std::string phase_name(const backend::Program& program, const backend::cpu::Phase& phase) {
  const std::string& first = program.ops[static_cast<size_t>(phase.first_op)].name;
  const size_t dot = first.rfind('.');
  const std::string place = dot == std::string::npos ? first : first.substr(0, dot);
  return place + ": " + phase_label(program, phase);
}

}  // namespace

int32_t StepTrace::name_id(const std::string& name) {
  const auto found = std::find(names_.begin(), names_.end(), name);
  if (found != names_.end()) return static_cast<int32_t>(found - names_.begin());
  names_.push_back(name);
  return static_cast<int32_t>(names_.size()) - 1;
}

/// On the engine's thread.
void StepTrace::add_slice(const TimeSpan& span, const std::string& name, std::string args) {
  slices_.push_back({0, span.begin_ns, span.end_ns, name_id(name), std::move(args)});
}

void StepTrace::observe(const StepRecord& record) {
  if (num_steps_ >= max_steps_) {
    ++num_left_out_;
    return;
  }
  const sched::BatchPlan& plan = record.plan;
  num_workers_ = record.forward.num_workers;
  if (num_steps_ > 0) add_slice({last_end_ns_, record.launch_ns}, "schedule");
  add_slice({record.launch_ns, record.sample.end_ns},
            fmt::format("{} step", step_class_name(class_of(plan))),
            fmt::format(R"("step":{},"tokens":{},"rows":{},"logits":{})", plan.step,
                        plan.tokens.size(), plan.rows.size(), plan.logits_rows.size()));
  add_slice(record.forward.step, "forward");
  add_slice(record.sample, "sample");
  add_events(record);
  add_phases(record);
  last_end_ns_ = backend::cpu::steady_ns();
  add_slice({record.sample.end_ns, last_end_ns_}, "profile");
  ++num_steps_;
}

void StepTrace::add_events(const StepRecord& record) {
  const sched::BatchPlan& plan = record.plan;
  const auto instant = [&](std::string name, std::string args) {
    marks_.push_back({'i', record.launch_ns, std::move(name), std::move(args)});
  };
  for (const sched::RowStart& start : plan.started) {
    instant(start.output.empty() ? "start" : "resume after preemption",
            fmt::format(R"("row":{},"request":{},"choice":{},"prompt_tokens":{})", start.row,
                        start.sequence.request, start.sequence.choice, start.prompt.size()));
  }
  for (const sched::RowId row : plan.finished) instant("finish", fmt::format(R"("row":{})", row));
  if (!plan.block_ops.empty()) {
    instant("block operations", fmt::format(R"("blocks":{})", plan.block_ops.size()));
  }
  marks_.push_back(
      {'C', record.launch_ns, "tokens in step", fmt::format(R"("tokens":{})", plan.tokens.size())});
  marks_.push_back(
      {'C', record.launch_ns, "rows in step", fmt::format(R"("rows":{})", plan.rows.size())});
}

void StepTrace::add_phases(const StepRecord& record) {
  if (phase_ids_.empty()) {
    for (const backend::cpu::Phase& phase : record.phases) {
      phase_ids_.push_back(name_id(phase_name(record.program, phase)));
    }
  }
  for (size_t i = 0; i < phase_ids_.size(); ++i) {
    for (int worker = 0; worker < num_workers_; ++worker) {
      const TimeSpan& work = record.forward.work_of(i, worker);
      if (work.duration() > 0) {
        slices_.push_back({1 + worker, work.begin_ns, work.end_ns, phase_ids_[i], {}});
      }
    }
  }
}

void StepTrace::write(std::ostream& out) const {
  int64_t zero = std::numeric_limits<int64_t>::max();
  for (const Slice& slice : slices_) zero = std::min(zero, slice.begin_ns);
  for (const Mark& mark : marks_) zero = std::min(zero, mark.at_ns);
  const auto us = [&](int64_t ns) { return static_cast<double>(ns) / 1e3; };
  out << R"({"displayTimeUnit":"ns","traceEvents":[)" << '\n';
  out << R"({"ph":"M","pid":1,"tid":0,"name":"process_name","args":{"name":"quire"}})";
  fmt::print(out, ",\n{}",
             R"({"ph":"M","pid":1,"tid":0,"name":"thread_name","args":{"name":"engine"}})");
  for (int worker = 0; worker < num_workers_; ++worker) {
    fmt::print(out,
               ",\n{{\"ph\":\"M\",\"pid\":1,\"tid\":{},\"name\":\"thread_name\","
               "\"args\":{{\"name\":\"worker {}\"}}}}",
               1 + worker, worker);
  }
  std::vector<std::string> names;
  for (const std::string& name : names_) names.push_back(quoted(name));
  for (const Slice& slice : slices_) {
    fmt::print(out,
               ",\n{{\"ph\":\"X\",\"pid\":1,\"tid\":{},\"ts\":{:.3f},\"dur\":{:.3f},\"name\":{}",
               slice.thread, us(slice.begin_ns - zero), us(slice.end_ns - slice.begin_ns),
               names[static_cast<size_t>(slice.name)]);
    if (!slice.args.empty()) out << ",\"args\":{" << slice.args << "}";
    out << "}";
  }
  for (const Mark& mark : marks_) {
    fmt::print(out,
               ",\n{{\"ph\":\"{}\",\"pid\":1,\"tid\":0,\"ts\":{:.3f},\"name\":{},\"args\":{{{}}}",
               mark.phase, us(mark.at_ns - zero), quoted(mark.name), mark.args);
    out << (mark.phase == 'i' ? ",\"s\":\"t\"}" : "}");
  }
  out << "\n]}\n";
}

}  // namespace quire::llm
