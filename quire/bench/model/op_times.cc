#include <algorithm>
#include <functional>
#include <map>
#include <string_view>
#include <utility>

#include "quire/bench/machine/ceiling_rounds.h"
#include "quire/bench/model/loaded_program.h"
#include "quire/bench/model/model_bench.h"
#include "quire/bench/model/program_cost.h"
#include "quire/bench/statistics.h"
#include "quire/bench/step_vectors.h"

namespace quire::bench {
namespace {

using backend::ActType;
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
  explicit OpTimer(const ModelBenchOptions& options)
      : options_(options), loaded_(program_options(options)) {
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
    loaded_.backend().launch(step.meta());  // touches pages
    loaded_.backend().wait();
    CeilingRounds ceilings(
        [this](const std::function<void(int, int)>& fn) { loaded_.backend().parallel(fn); },
        loaded_.backend().num_workers(), backend::cpu::chosen_level(), options_.ceiling_bytes);
    const std::vector<double> seconds = phase_seconds(step, ceilings);
    OpTable table;
    table.step.is_prefill = is_prefill;
    table.step.batch = batch;
    table.step.tokens = tokens;
    table.ceilings = ceilings.medians();
    fill(table, seconds, backend::dryrun::step_cost(loaded_.program(), shape));
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

  /// By phase: the median over rounds, 0 for phases without rows.
  std::vector<double> phase_seconds(StepVectors& step, CeilingRounds& ceilings) {
    backend::cpu::CpuBackend& backend = loaded_.backend();
    std::vector<std::vector<double>> rounds;
    for (int round = 0; round < options_.rounds; ++round) {
      ceilings.read();
      for (const auto act : {ActType::kF32, ActType::kBF16, ActType::kI8}) ceilings.peak(act);
      backend.reset_op_times();
      backend.launch(step.meta());
      backend.wait();
      rounds.resize(backend.op_times().size());
      for (size_t i = 0; i < rounds.size(); ++i) {
        rounds[i].push_back(static_cast<double>(backend.op_times()[i].nanoseconds) * 1e-9);
      }
    }
    std::vector<double> seconds;
    for (const auto& phase : rounds) seconds.push_back(median(phase));
    return seconds;
  }

  void fill(OpTable& table, const std::vector<double>& seconds, const std::vector<OpCost>& costs) {
    struct Sum {
      OpLine line;
      double bytes = 0;
      double operations = 0;
      double least = 0;
    };
    std::map<std::string, Sum> sums;
    for (size_t i = 0; i < seconds.size(); ++i) {
      if (seconds[i] == 0) continue;
      const backend::cpu::Phase& phase = loaded_.backend().op_times()[i].phase;
      const auto first = static_cast<size_t>(phase.first_op);
      const auto last = static_cast<size_t>(phase.last_op);
      std::vector<std::string> names;
      for (size_t op = first; op < last; ++op) names.push_back(loaded_.program().ops[op].name);
      Sum& sum = sums[phase_name(names)];
      const ProgramCost cost = cost_of_ops(loaded_.program(), costs, first, last);
      ++sum.line.count;
      sum.line.seconds += seconds[i];
      sum.bytes += cost.bytes;
      sum.operations += cost.operations;
      sum.least += roofline_seconds(loaded_.program(), costs, first, last, table.ceilings);
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

std::vector<OpTable> time_ops(const ModelBenchOptions& options) {
  OpTimer timer(options);
  std::vector<OpTable> tables;
  for (const int64_t length : options.prefills) tables.push_back(timer.time(true, 1, length));
  for (const int64_t batch : options.batches) {
    tables.push_back(timer.time(false, batch, options.context));
  }
  return tables;
}

}  // namespace quire::bench
