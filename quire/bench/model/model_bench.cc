#include "quire/bench/model/model_bench.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include "quire/base/error.h"
#include "quire/base/thread_pool.h"
#include "quire/bench/kernels/kernel_bench.h"
#include "quire/bench/machine/ceiling_rounds.h"
#include "quire/bench/model/loaded_program.h"
#include "quire/bench/model/program_cost.h"
#include "quire/bench/statistics.h"
#include "quire/bench/step_vectors.h"
#include "quire/llm/llm.h"

namespace quire::bench {
namespace {

using engine::Clock;

double seconds(Clock::duration duration) {
  return std::chrono::duration<double>(duration).count();
}

int64_t longest(const std::vector<int64_t>& values) {
  return values.empty() ? 0 : *std::max_element(values.begin(), values.end());
}

/// Steps that some streams decode while others' prompts are still being computed.
int64_t steps_of_prompts(const ModelBenchOptions& options, int64_t batch) {
  const int64_t budget = std::max<int64_t>(1, options.llm.max_num_batched_tokens - batch);
  return (batch * options.context + budget - 1) / budget + 2;
}

int64_t output_tokens(const ModelBenchOptions& options, int64_t batch) {
  return options.decode_tokens + steps_of_prompts(options, batch) + 1;
}

/// The longest sequence and the blocks of all, so that no more and no less is reserved.
llm::Options engine_options(const ModelBenchOptions& options) {
  llm::Options llm = options.llm;
  const int64_t batch = longest(options.batches);
  const int64_t decoded = batch == 0 ? 0 : options.context + output_tokens(options, batch);
  const int64_t length = std::max(longest(options.prefills) + 1, decoded);
  const auto blocks_of = [&](int64_t tokens) { return tokens / llm.block_size + 2; };
  llm.max_model_len = length;
  llm.max_num_seqs = static_cast<int32_t>(std::max<int64_t>(1, batch));
  llm.max_num_batched_tokens = std::max<int64_t>(llm.max_num_batched_tokens, llm.max_num_seqs);
  llm.num_gpu_blocks_override = std::max(blocks_of(length), batch * blocks_of(decoded));
  llm.enable_prefix_caching = false;
  llm.swap_space_bytes = 0;
  llm.target_itl_ms = 0;  // prompts are computed in as few steps as steps_of_prompts() says
  return llm;
}

/// Stops the engine's thread between two steps, so that requests which are submitted one by one
/// start together.
class Gate {
 public:
  /// On the engine's thread, after a step.
  void pass() {
    std::unique_lock lock(mutex_);
    opened_.wait(lock, [this] { return open_; });
  }
  void set_open(bool open) {
    const std::lock_guard lock(mutex_);
    open_ = open;
    opened_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable opened_;
  bool open_ = true;
};

/// Closed while it lives.
class ClosedGate {
 public:
  explicit ClosedGate(Gate& gate) : gate_(gate) { gate_.set_open(false); }
  ~ClosedGate() { gate_.set_open(true); }
  ClosedGate(const ClosedGate&) = delete;
  ClosedGate& operator=(const ClosedGate&) = delete;

 private:
  Gate& gate_;
};

/// A test of the list: prefill of some length or decode of some batch, with its samples.
struct Test {
  bool is_prefill;
  int64_t batch;
  int64_t tokens;  // see ModelRate
  ProgramCost cost;
  std::vector<double> rates = {};
  std::vector<double> seconds = {};
  std::vector<double> read_shares = {};
  std::vector<double> peak_shares = {};
};

class ModelBench {
 public:
  explicit ModelBench(const ModelBenchOptions& options)
      : options_(options),
        pool_(pool_options(options)),
        ceilings_([this](const std::function<void(int, int)>& fn) { pool_.run(fn); },
                  pool_.num_workers(), backend::cpu::chosen_level(), options.ceiling_bytes) {}

  ModelBenchResult run() {
    list_tests();
    llm::Options llm_options = engine_options(options_);
    llm_options.on_step = [this](const engine::StepStats&) { gate_.pass(); };
    llm::LLM llm(llm_options);
    const int total = options_.rounds * static_cast<int>(tests_.size());
    int done = 0;
    if (!tests_.empty()) measure(llm, tests_.front(), 0);  // touches pages, wakes threads
    for (int round = 0; round < options_.rounds; ++round) {
      for (Test& test : tests_) {
        if (options_.on_progress) options_.on_progress(done++, total);
        run_test(llm, test, ++salt_);
      }
    }
    if (options_.on_progress) options_.on_progress(total, total);
    ModelBenchResult result;
    result.model = options_.llm.model;
    result.backend = llm.backend_name();
    result.weight_bytes = llm.memory().weights;
    result.rounds = options_.rounds;
    result.ceilings = ceilings_.medians();
    for (const Test& test : tests_) result.rates.push_back(rate_of(test));
    if (!tests_.empty()) result.main_act = tests_.front().cost.main_act;
    return result;
  }

 private:
  static ThreadPool::Options pool_options(const ModelBenchOptions& options) {
    ThreadPool::Options pool;
    pool.cpus = options.llm.cpu_affinity;
    pool.num_threads = options.llm.threads;
    if (pool.num_threads == 0) pool.num_threads = static_cast<int>(pool.cpus.size());
    return pool;
  }

  void list_tests() {
    LoadedProgramOptions counted;
    counted.llm = options_.llm;
    counted.max_tokens = std::max(longest(options_.prefills), longest(options_.batches));
    counted.max_logits = std::max<int64_t>(1, longest(options_.batches));
    const backend::Program program = count_program(counted);
    for (const int64_t length : options_.prefills) {
      tests_.push_back({true, 1, length, cost_of_step(program, {{{length, length}}, 1})});
    }
    for (const int64_t batch : options_.batches) {
      const int64_t middle =
          options_.context + steps_of_prompts(options_, batch) / 2 + options_.decode_tokens / 2;
      backend::dryrun::StepShape step;
      step.rows.assign(static_cast<size_t>(batch), {1, middle});
      step.num_logits = batch;
      tests_.push_back({false, batch, middle, cost_of_step(program, step)});
    }
  }

  void run_test(llm::LLM& llm, Test& test, int64_t salt) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));  // the engine's workers go to sleep
    const double read = ceilings_.read();
    const double peak = ceilings_.peak(test.cost.main_act);
    const double step = measure(llm, test, salt);
    test.seconds.push_back(step);
    const int64_t tokens = test.is_prefill ? test.tokens : test.batch;
    test.rates.push_back(static_cast<double>(tokens) / step);
    test.read_shares.push_back(test.cost.bytes / step / 1e9 / read);
    test.peak_shares.push_back(test.cost.operations / step / 1e9 / peak);
  }

  /// Seconds of the prompt, or of a decode step.
  double measure(llm::LLM& llm, const Test& test, int64_t salt) {
    return test.is_prefill ? prefill_seconds(llm, test.tokens, salt)
                           : decode_seconds(llm, test.batch, salt);
  }

  engine::OutputStream submit(llm::LLM& llm, int64_t length, int64_t max_tokens,
                              int64_t salt) const {
    engine::EngineRequest request;
    request.prompt = some_tokens(length, llm.config().vocab_size, salt);
    request.sampling.temperature = 0;
    request.sampling.max_tokens = static_cast<int32_t>(max_tokens);
    request.sampling.ignore_eos = true;
    auto stream = llm.engine().submit(std::move(request));
    if (!stream.ok()) throw LoadError("bench model", stream.error().message);
    return std::move(stream).value();
  }

  double prefill_seconds(llm::LLM& llm, int64_t length, int64_t salt) const {
    engine::OutputStream stream = submit(llm, length, 1, salt);
    std::optional<engine::RequestSummary> summary;
    for (std::vector<engine::OutputEvent> events; stream.wait(events);) {
      for (const engine::OutputEvent& event : events) {
        if (event.error) throw LoadError("bench model", event.error->message);
        if (event.summary) summary = event.summary;
      }
    }
    if (!summary) throw LoadError("bench model", "a request ended without a summary");
    return seconds(summary->first_token - summary->first_scheduled);
  }

  std::vector<engine::OutputStream> start_streams(llm::LLM& llm, int64_t batch, int64_t salt) {
    const ClosedGate closed(gate_);
    std::vector<engine::OutputStream> streams;
    for (int64_t i = 0; i < batch; ++i) {
      streams.push_back(
          submit(llm, options_.context, output_tokens(options_, batch), salt * 1000 + i));
    }
    return streams;
  }

  /// In the window where all streams decode: after the last one's first token, up to the first
  /// one's last.
  double decode_seconds(llm::LLM& llm, int64_t batch, int64_t salt) {
    std::vector<engine::OutputStream> streams = start_streams(llm, batch, salt);
    std::vector<Clock::time_point> times;
    Clock::time_point begin = Clock::time_point::min();
    Clock::time_point end = Clock::time_point::max();
    for (engine::OutputStream& stream : streams) {
      const size_t first = times.size();
      for (std::vector<engine::OutputEvent> events; stream.wait(events);) {
        for (const engine::OutputEvent& event : events) {
          if (event.error) throw LoadError("bench model", event.error->message);
          times.insert(times.end(), event.tokens.size(), event.time);
        }
      }
      if (times.size() == first) throw LoadError("bench model", "a stream gave no token");
      begin = std::max(begin, times[first]);
      end = std::min(end, times.back());
    }
    const auto count = std::count_if(times.begin(), times.end(),
                                     [&](Clock::time_point t) { return t > begin && t <= end; });
    if (count == 0) throw LoadError("bench model", "the streams never decoded together");
    return seconds(end - begin) / static_cast<double>(count) * static_cast<double>(batch);
  }

  static ModelRate rate_of(const Test& test) {
    ModelRate rate;
    rate.is_prefill = test.is_prefill;
    rate.batch = test.batch;
    rate.tokens = test.tokens;
    rate.seconds = median(test.seconds);
    rate.tokens_per_s = median(test.rates);
    rate.gbs = test.cost.bytes / rate.seconds / 1e9;
    rate.gops = test.cost.operations / rate.seconds / 1e9;
    rate.read_share = median(test.read_shares);
    rate.peak_share = median(test.peak_shares);
    return rate;
  }

  const ModelBenchOptions& options_;
  Gate gate_;
  ThreadPool pool_;
  CeilingRounds ceilings_;
  std::vector<Test> tests_;
  int64_t salt_ = 0;
};

void check(const ModelBenchOptions& options) {
  const auto positive = [](const char* option, const std::vector<int64_t>& values) {
    for (const int64_t value : values) {
      if (value < 1 || value > 1 << 20) {
        throw LoadError(option, "", "positive numbers", std::to_string(value));
      }
    }
  };
  positive("--prefill", options.prefills);
  positive("--batch", options.batches);
  positive("--context", {options.context});
  positive("--decode", {options.decode_tokens});
  positive("--rounds", {options.rounds});
}

}  // namespace

ModelBenchResult bench_model(const ModelBenchOptions& options) {
  check(options);
  ModelBenchResult result = ModelBench(options).run();
  if (options.with_ops) result.ops = time_ops(options);
  return result;
}

}  // namespace quire::bench
