#include <algorithm>
#include <cstring>
#include <map>
#include <string_view>
#include <utility>

#include "quire/bench/model/loaded_program.h"
#include "quire/bench/model/model_bench.h"
#include "quire/bench/model/program_cost.h"
#include "quire/bench/step_vectors.h"

namespace quire::bench {
namespace {

using backend::Program;
using backend::dryrun::OpCost;

/// "model.layers.3.mlp.up_proj" -> "mlp.up_proj".
std::string_view without_layer(std::string_view name) {
  const size_t layers = name.find("layers.");
  if (layers == std::string_view::npos) return name;
  const size_t after = name.find('.', layers + 7);
  return after == std::string_view::npos ? name : name.substr(after + 1);
}

class OpTimer {
 public:
  OpTimer(const ModelBenchOptions& options, const backend::cpu::Ceilings& ceilings)
      : options_(options), ceilings_(ceilings), loaded_(program_options(options)) {
    loaded_.commit_kv();
  }

  OpTable time(bool is_prefill, int64_t batch, int64_t tokens) {
    StepVectors step(static_cast<int32_t>(loaded_.program().cache_groups.size()),
                     loaded_.block_tokens());
    backend::dryrun::StepShape shape;
    const int64_t blocks = (tokens + loaded_.block_tokens() - 1) / loaded_.block_tokens();
    for (int64_t row = 0; row < batch; ++row) {
      const int64_t count = is_prefill ? tokens : 1;
      step.add_row(some_tokens(count, loaded_.program().vocab_size, row), tokens - count,
                   row * blocks);
      step.want_logits(1);
      shape.rows.push_back({count, tokens});
    }
    shape.num_logits = batch;
    run_step(step);  // touches pages
    loaded_.backend().reset_op_times();
    for (int round = 0; round < options_.rounds; ++round) run_step(step);
    OpTable table;
    table.step.is_prefill = is_prefill;
    table.step.batch = batch;
    table.step.tokens = tokens;
    fill(table, backend::dryrun::step_cost(loaded_.program(), shape));
    return table;
  }

 private:
  static LoadedProgramOptions program_options(const ModelBenchOptions& options) {
    LoadedProgramOptions loaded;
    loaded.llm = options.llm;
    loaded.time_ops = true;
    loaded.max_tokens = 1;
    loaded.kv_tokens = 1;
    for (const int64_t length : options.prefills) {
      loaded.max_tokens = std::max(loaded.max_tokens, length);
      loaded.kv_tokens = std::max(loaded.kv_tokens, length);
    }
    for (const int64_t batch : options.batches) {
      loaded.max_tokens = std::max(loaded.max_tokens, batch);
      loaded.max_logits = std::max(loaded.max_logits, batch);
      loaded.kv_tokens =
          std::max(loaded.kv_tokens, batch * (options.context + options.llm.block_size));
    }
    return loaded;
  }

  void run_step(StepVectors& step) {
    loaded_.backend().launch(step.meta());
    loaded_.backend().wait();
  }

  void fill(OpTable& table, const std::vector<OpCost>& costs) {
    struct Sum {
      OpLine line;
      double bytes = 0;
      double operations = 0;
      double least = 0;
    };
    std::map<std::string, Sum> sums;
    for (const backend::cpu::PhaseTime& time : loaded_.backend().op_times()) {
      if (time.steps == 0) continue;
      const auto first = static_cast<size_t>(time.phase.first_op);
      const auto last = static_cast<size_t>(time.phase.last_op);
      std::vector<std::string> names;
      for (size_t op = first; op < last; ++op) names.push_back(loaded_.program().ops[op].name);
      Sum& sum = sums[phase_name(names)];
      const ProgramCost cost = cost_of_ops(loaded_.program(), costs, first, last);
      ++sum.line.count;
      sum.line.seconds +=
          static_cast<double>(time.nanoseconds) * 1e-9 / static_cast<double>(time.steps);
      sum.bytes += cost.bytes;
      sum.operations += cost.operations;
      sum.least += roofline_seconds(loaded_.program(), costs, first, last, ceilings_);
    }
    for (const auto& [name, sum] : sums) table.step.seconds += sum.line.seconds;
    for (auto& [name, sum] : sums) {
      OpLine& line = sum.line;
      line.name = name;
      line.share = line.seconds / table.step.seconds;
      // A chain of row operations reads its norms' vectors, which are in a cache.
      if (sum.operations > 0) {
        line.gbs = sum.bytes / line.seconds / 1e9;
        line.gops = sum.operations / line.seconds / 1e9;
        line.roofline = sum.least / line.seconds;
      }
      table.lines.push_back(line);
    }
    std::sort(table.lines.begin(), table.lines.end(),
              [](const OpLine& a, const OpLine& b) { return a.seconds > b.seconds; });
  }

  const ModelBenchOptions& options_;
  const backend::cpu::Ceilings& ceilings_;
  LoadedProgram loaded_;
};

}  // namespace

std::string phase_name(const std::vector<std::string>& op_names) {
  std::string out;
  std::string_view parent;
  for (const std::string& full : op_names) {
    const std::string_view name = without_layer(full);
    const size_t dot = name.rfind('.');
    const std::string_view above = dot == std::string_view::npos ? "" : name.substr(0, dot);
    const std::string_view own = dot == std::string_view::npos ? name : name.substr(dot + 1);
    if (!out.empty()) out += " + ";
    out += above.empty() || above == parent ? own : name;
    parent = above;
  }
  return out;
}

std::vector<OpTable> time_ops(const ModelBenchOptions& options,
                              const backend::cpu::Ceilings& ceilings) {
  OpTimer timer(options, ceilings);
  std::vector<OpTable> tables;
  for (const int64_t length : options.prefills) tables.push_back(timer.time(true, 1, length));
  for (const int64_t batch : options.batches) {
    tables.push_back(timer.time(false, batch, options.context));
  }
  return tables;
}

}  // namespace quire::bench
