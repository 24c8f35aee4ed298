#include "quire/engine/engine.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <exception>
#include <limits>
#include <span>
#include <stdexcept>
#include <thread>
#include <utility>

#include "quire/base/log.h"
#include "quire/engine/admission.h"
#include "quire/engine/inbox.h"
#include "quire/engine/request_check.h"
#include "quire/engine/request_table.h"
#include "quire/engine/step_pace.h"
#include "quire/runner/kept_tier.h"
#include "quire/runner/runner.h"
#include "quire/sched/scheduler.h"

namespace quire::engine {

struct Engine::Impl {
  Impl(Options given, runner::Runner& step_runner, const text::Tokenizer* text_tokenizer)
      : options(std::move(given)),
        tokenizer(text_tokenizer),
        runner(step_runner),
        scheduler(options.scheduler),
        admission(options.max_waiting_requests, options.max_waiting_prompt_tokens),
        pace({.target = options.target_itl,
              .max_work = std::numeric_limits<double>::max(),
              .first_unit_guess = std::chrono::nanoseconds(options.scheduler.recompute_token_ns)}),
        token_budget(options.scheduler.max_num_batched_tokens),
        table(options.scheduler.max_num_seqs, tokenizer, options.eos_token_ids, admission) {}

  void run();
  bool read_inbox();
  void open(Submission&& submission);
  void cancel(RequestId id);
  void step();
  void set_budget();
  void observe(const sched::BatchPlan& plan, Clock::duration duration);
  void publish();
  EngineStats current_stats() const;
  void restore_cache();
  void keep_cache();
  void tell_freed_blocks();
  void die(const char* reason);

  const Options options;
  const text::Tokenizer* const tokenizer;
  std::atomic<RequestId> next_id{1};

  // The engine thread's own.
  runner::Runner& runner;
  sched::Scheduler scheduler;
  Admission admission;
  StepPace pace;
  int32_t token_budget;
  RequestTable table;
  std::vector<Letter> letters;
  int64_t num_steps = 0;
  std::vector<bool> was_empty;  // by block, for on_block_freed

  // How the other threads meet it.
  std::shared_ptr<Inbox> inbox = std::make_shared<Inbox>();
  mutable std::mutex stats_mutex;
  EngineStats stats;
  std::thread thread;
};

void Engine::Impl::run() {
  try {
    restore_cache();
    for (bool open = true; open;) {
      open = read_inbox();
      if (!table.empty()) step();
      if (options.on_block_freed) tell_freed_blocks();
      publish();
      table.wake();
    }
    keep_cache();
  } catch (const std::exception& error) {
    die(error.what());
  }
}

/// One step: plan, run, judge, commit, deliver.
void Engine::Impl::step() {
  if (options.target_itl.count() > 0) set_budget();
  const Clock::time_point begin = Clock::now();
  const sched::BatchPlan* plan = scheduler.plan();
  if (plan == nullptr) throw std::logic_error("requests are in flight, but no step can be planned");
  table.begin(*plan, begin);
  runner.launch(*plan);
  runner::StepOutput& output = runner.finish();
  const auto sampled = table.judge(*plan, output);
  const auto events = scheduler.commit(plan->step, sampled);
  const Clock::time_point now = Clock::now();
  table.deliver(events, now);
  ++num_steps;
  observe(*plan, now - begin);
}

/// What a step may take depends on time; to the scheduler it is an event like others.
void Engine::Impl::set_budget() {
  const int32_t streams = table.num_streaming();
  const int32_t most = options.scheduler.max_num_batched_tokens;
  int64_t wanted = most;
  if (streams > 0) {
    const int64_t tokens =
        scheduler.prompt_tokens_within(pace.work(streams, scheduler.num_prompts()));
    wanted = std::min<int64_t>(most, streams + std::max<int64_t>(tokens, StepPace::kMinWork));
  }
  if (wanted == token_budget) return;
  token_budget = static_cast<int32_t>(wanted);
  scheduler.set_token_budget(token_budget);
}

void Engine::Impl::observe(const sched::BatchPlan& plan, Clock::duration duration) {
  int32_t decode_rows = 0;
  double work = 0;
  for (const sched::PlanRow& row : plan.rows) {
    if (row.num_tokens == 1) {
      ++decode_rows;
    } else {
      work += options.scheduler.prompt_work.of(row.num_tokens, row.context_len - row.num_tokens);
    }
  }
  pace.observe(decode_rows, work, duration);
  const auto num_tokens = static_cast<int32_t>(plan.tokens.size());
  if (options.on_step) {
    options.on_step({.num_tokens = num_tokens,
                     .num_rows = static_cast<int64_t>(plan.rows.size()),
                     .duration = duration});
  }
}

/// Takes in what has come, waiting for something when nothing is in flight. False: stop.
bool Engine::Impl::read_inbox() {
  inbox->read(letters, table.empty());
  for (Letter& letter : letters) {
    if (auto* submission = std::get_if<Submission>(&letter)) {
      open(std::move(*submission));
    } else if (auto* cancellation = std::get_if<Cancellation>(&letter)) {
      cancel(cancellation->id);
    } else {
      // Nothing was posted after it: admission was closed first.
      for (const RequestId id : table.ids()) cancel(id);
      return false;
    }
  }
  return true;
}

void Engine::Impl::open(Submission&& submission) {
  const RequestId id = submission.request.id;
  table.add(submission);
  submission.channel.reset();
  if (std::optional<Error> error = scheduler.add(std::move(submission.request))) {
    table.end(id, FinishReason::kError, error, Clock::now());
  }
}

void Engine::Impl::cancel(RequestId id) {
  scheduler.cancel(id);
  table.end(id, FinishReason::kAbort, std::nullopt, Clock::now());
}

void Engine::Impl::publish() {
  EngineStats now = current_stats();
  now.num_running = scheduler.num_running();
  now.num_waiting = scheduler.num_waiting();
  now.kv_cache_usage = scheduler.kv_usage();
  now.swap_usage = scheduler.swap_usage();
  std::lock_guard lock(stats_mutex);
  stats = now;
}

/// All but the gauges, which are 0.
EngineStats Engine::Impl::current_stats() const {
  EngineStats now = table.stats();
  now.num_preemptions = scheduler.num_preemptions();
  now.num_steps = num_steps;
  now.token_budget = token_budget;
  now.prefix_cache_queries = scheduler.cache_counts().queries;
  now.prefix_cache_hits = scheduler.cache_counts().hits;
  now.swap = scheduler.swap_counts();
  return now;
}

void Engine::Impl::restore_cache() {
  if (options.kept_tier == nullptr) return;
  options.kept_tier->restore([this](int32_t block, const kv::BlockHash& hash,
                                    const kv::BlockHash& parent, std::span<const int32_t> tokens) {
    scheduler.restore_cached(block, hash, parent, tokens);
  });
}

/// Moves what the pool has cached to the swap space, and leaves the swap space for the next run.
void Engine::Impl::keep_cache() {
  if (options.kept_tier == nullptr) return;
  if (const sched::BatchPlan* plan = scheduler.plan_flush()) {
    runner.launch(*plan);
    runner.finish();
    scheduler.commit(plan->step, {});
  }
  scheduler.for_each_cached([this](int32_t block, const kv::BlockHash& hash,
                                   const kv::BlockHash& parent, std::span<const int32_t> tokens) {
    options.kept_tier->add(block, hash, parent, tokens);
  });
  options.kept_tier->write(options.scheduler.cache_seed);
}

void Engine::Impl::tell_freed_blocks() {
  const kv::BlockPool& pool = scheduler.pool();
  was_empty.resize(static_cast<size_t>(pool.num_blocks()), true);
  for (kv::BlockId block = 0; block < pool.num_blocks(); ++block) {
    const bool is_empty = pool.ref_count(block) == 0 && !pool.is_published(block);
    if (is_empty && !was_empty[static_cast<size_t>(block)]) options.on_block_freed(block);
    was_empty[static_cast<size_t>(block)] = is_empty;
  }
}

/// The last act of a thread whose step failed: everyone is told, nobody else gets in.
void Engine::Impl::die(const char* reason) {
  log_error("the engine failed: {}", reason);
  admission.close(State::kDead);
  const Error error{ErrorKind::kInternal, "The engine failed while this request was running.", ""};
  const auto add_unopened = [this] {
    for (const Letter& letter : letters) {
      const auto* submission = std::get_if<Submission>(&letter);
      if (submission != nullptr && submission->channel != nullptr) table.add(*submission);
    }
  };
  add_unopened();
  inbox->read(letters, false);
  add_unopened();
  table.end_all(FinishReason::kError, error, Clock::now());
  {
    const EngineStats last = current_stats();
    std::lock_guard lock(stats_mutex);
    stats = last;
  }
  table.wake();
}

Engine::Engine(Options options, runner::Runner& runner, const text::Tokenizer* tokenizer)
    : impl_(std::make_unique<Impl>(std::move(options), runner, tokenizer)) {
  impl_->thread = std::thread([impl = impl_.get()] { impl->run(); });
}

Engine::~Engine() {
  stop();
}

Result<OutputStream> Engine::submit(EngineRequest request) {
  if (std::optional<Error> error =
          check_request(request, impl_->options, impl_->tokenizer != nullptr)) {
    return *error;
  }
  normalize_request(request, impl_->options);
  const auto prompt_tokens = static_cast<int64_t>(request.prompt.size());
  const RequestId id = impl_->next_id++;
  auto channel = std::make_shared<OutputChannel>();
  Submission submission{
      .request = {.id = id,
                  .prompt = std::move(request.prompt),
                  .sampling = std::move(request.sampling),
                  .n = request.n,
                  .priority = request.priority,
                  .cache_salt = std::move(request.cache_salt)},
      .stop = std::move(request.stop),
      .include_stop_str_in_output = request.include_stop_str_in_output,
      .skip_special_tokens = request.skip_special_tokens,
      .arrival = request.arrival.value_or(Clock::now()),
      .channel = channel,
  };
  if (std::optional<Error> error = sched::refuse(submission.request, impl_->options.scheduler)) {
    return *error;
  }
  const auto post = [&] { impl_->inbox->post(std::move(submission)); };
  if (std::optional<Error> error = impl_->admission.enter(prompt_tokens, post)) return *error;
  return OutputStream(std::move(channel), impl_->inbox, id);
}

void Engine::cancel(RequestId id) {
  impl_->inbox->post(Cancellation{id});
}

bool Engine::drain(Clock::duration timeout) {
  impl_->admission.close(State::kDraining);
  return impl_->admission.wait_empty(timeout);
}

void Engine::stop() {
  impl_->admission.close(State::kStopped);
  if (!impl_->thread.joinable()) return;
  impl_->inbox->post(Stop{});
  impl_->thread.join();
}

Engine::State Engine::state() const {
  return impl_->admission.state();
}

EngineStats Engine::stats() const {
  std::lock_guard lock(impl_->stats_mutex);
  return impl_->stats;
}

const Engine::Options& Engine::options() const {
  return impl_->options;
}

}  // namespace quire::engine
