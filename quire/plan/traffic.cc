#include "quire/plan/traffic.h"

#include <algorithm>
#include <optional>
#include <random>
#include <unordered_map>

#include <fmt/format.h>
#include <boost/json.hpp>

#include "quire/base/check.h"
#include "quire/base/error.h"
#include "quire/sched/scheduler.h"

namespace quire::plan {
namespace {

namespace json = boost::json;

constexpr int64_t kMaxLength = 1 << 24;
/// Sampled tokens are numbers that no prompt has.
constexpr int32_t kFirstSampled = 1 << 24;
constexpr int64_t kMaxTokensPlayed = 3'000'000;

sched::SchedulerOptions scheduler_options(const Plan& plan) {
  sched::SchedulerOptions options;
  options.max_num_batched_tokens = static_cast<int32_t>(plan.options.record.max_tokens);
  options.max_num_seqs = plan.options.max_num_seqs;
  options.max_model_len = static_cast<int32_t>(plan.max_model_len);
  options.max_logits_rows = std::max<int32_t>(64, plan.options.max_num_seqs);
  options.block_tokens = static_cast<int32_t>(plan.block_tokens());
  options.num_blocks = static_cast<int32_t>(plan.num_blocks);
  return options;
}

double percentile(std::vector<double>& values, double share) {
  if (values.empty()) return 0;
  const auto at = static_cast<std::ptrdiff_t>(share * static_cast<double>(values.size() - 1));
  std::nth_element(values.begin(), values.begin() + at, values.end());
  return values[static_cast<size_t>(at)];
}

class Player {
 public:
  Player(const Plan& plan, const TrafficOptions& options)
      : options_(options), scheduler_(scheduler_options(plan)), random_(options.seed) {
    if (plan.options.device.has_ceilings()) clock_.emplace(plan);
    QUIRE_CHECK(!options.lengths.empty());
    int64_t sum = 0;
    for (const RequestLength& length : options.lengths) {
      sum += length.output_len + length.prompt_len / 16;
    }
    const int64_t mean = std::max<int64_t>(1, sum / static_cast<int64_t>(options.lengths.size()));
    const int64_t wanted =
        options.num_requests > 0 ? options.num_requests : std::max(64, 8 * options.users);
    num_requests_ = static_cast<int32_t>(
        std::max<int64_t>(options.users, std::min(wanted, kMaxTokensPlayed / mean)));
  }

  TrafficResult play() {
    for (int32_t user = 0; user < options_.users; ++user) submit_next();
    while (const sched::BatchPlan* plan = scheduler_.plan()) step(*plan);
    if (result_.requests == result_.refused) {
      throw LoadError("--prompt-len, --output-len", "no request of these lengths can run");
    }
    return finish();
  }

 private:
  struct Flight {
    double submitted = 0;
    double last_token = 0;
    int32_t starts = 0;
    bool has_token = false;
  };

  void submit_next() {
    while (result_.requests < num_requests_) {
      const size_t index =
          std::uniform_int_distribution<size_t>(0, options_.lengths.size() - 1)(random_);
      const RequestLength& length = options_.lengths[index];
      sched::Request request{.id = next_id_++};
      request.prompt.resize(static_cast<size_t>(length.prompt_len));
      for (int32_t& token : request.prompt) token = static_cast<int32_t>(random_() % kFirstSampled);
      request.sampling.max_tokens = length.output_len;
      request.sampling.ignore_eos = true;
      const sched::RequestId id = request.id;
      ++result_.requests;
      if (scheduler_.add(std::move(request))) {
        ++result_.refused;
        continue;
      }
      flights_[id] = {.submitted = now_, .last_token = now_};
      return;
    }
  }

  void step(const sched::BatchPlan& plan) {
    for (const sched::RowStart& row : plan.started) {
      Flight& flight = flights_[row.sequence.request];
      if (++flight.starts == 2) ++result_.preempted_requests;
    }
    int64_t context = 0;
    for (const sched::PlanRow& row : plan.rows) context += row.context_len;
    const int32_t running = scheduler_.num_running();
    ++result_.steps;
    running_sum_ += running;
    waiting_sum_ += scheduler_.num_waiting();
    usage_sum_ += scheduler_.kv_usage();
    result_.peak_running = std::max(result_.peak_running, running);
    result_.peak_kv_usage = std::max(result_.peak_kv_usage, scheduler_.kv_usage());
    if (clock_) now_ += clock_->seconds(static_cast<int64_t>(plan.tokens.size()), context);
    sampled_.clear();
    for (const sched::LogitsUse& use : plan.uses) {
      if (use.kind == sched::LogitsUse::Kind::kSample) sampled_.push_back({.token = next_token_});
      next_token_ = next_token_ == INT32_MAX ? kFirstSampled : next_token_ + 1;
    }
    for (const sched::CommitEvent& event : scheduler_.commit(plan.step, sampled_)) take(event);
    for (; ended_ > 0; --ended_) submit_next();
  }

  void take(const sched::CommitEvent& event) {
    const auto found = flights_.find(event.sequence.request);
    if (found == flights_.end()) return;
    Flight& flight = found->second;
    if (event.token >= 0) {
      ++result_.output_tokens;
      (flight.has_token ? itl_ : ttft_)
          .push_back(now_ - (flight.has_token ? flight.last_token : flight.submitted));
      flight.has_token = true;
      flight.last_token = now_;
    }
    if (event.finish == sched::FinishReason::kNone) return;
    flights_.erase(found);
    ++ended_;
  }

  TrafficResult finish() {
    const auto steps = static_cast<double>(std::max<int64_t>(1, result_.steps));
    result_.mean_running = static_cast<double>(running_sum_) / steps;
    result_.mean_waiting = static_cast<double>(waiting_sum_) / steps;
    result_.mean_kv_usage = usage_sum_ / steps;
    result_.preemptions = scheduler_.num_preemptions();
    if (!clock_) return result_;
    result_.seconds = now_;
    result_.tokens_per_s = static_cast<double>(result_.output_tokens) / now_;
    result_.ttft_p50 = percentile(ttft_, 0.5);
    result_.ttft_p99 = percentile(ttft_, 0.99);
    for (const double each : itl_) result_.itl_mean += each / static_cast<double>(itl_.size());
    result_.itl_p99 = percentile(itl_, 0.99);
    return result_;
  }

  const TrafficOptions& options_;
  sched::Scheduler scheduler_;
  std::optional<StepClock> clock_;
  std::mt19937_64 random_;
  int32_t num_requests_ = 0;
  TrafficResult result_;
  std::unordered_map<sched::RequestId, Flight> flights_;
  std::vector<sched::SampledToken> sampled_;
  std::vector<double> ttft_;
  std::vector<double> itl_;
  double now_ = 0;
  double usage_sum_ = 0;
  int64_t running_sum_ = 0;
  int64_t waiting_sum_ = 0;
  sched::RequestId next_id_ = 0;
  int32_t next_token_ = kFirstSampled;
  int32_t ended_ = 0;
};

int32_t length_of(const json::object& object, std::string_view key, const std::string& where) {
  const json::value* value = object.if_contains(key);
  if (value == nullptr || !value->is_int64() || value->as_int64() < 1 ||
      value->as_int64() > kMaxLength) {
    throw LoadError(where, key, "a length from 1 to 2^24",
                    value == nullptr ? "none" : json::serialize(*value));
  }
  return static_cast<int32_t>(value->as_int64());
}

}  // namespace

double TrafficResult::preemption_probability() const {
  const int32_t ran = requests - refused;
  return ran > 0 ? static_cast<double>(preempted_requests) / ran : 0.0;
}

std::vector<RequestLength> parse_request_lengths(std::string_view text, const std::string& where) {
  std::vector<RequestLength> lengths;
  int line_number = 0;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    ++line_number;
    if (line.find_first_not_of(" \t\r") == std::string_view::npos) continue;
    const std::string here = fmt::format("{}:{}", where, line_number);
    json::error_code error;
    const json::value value = json::parse(line, error);
    if (error || !value.is_object()) throw LoadError(here, "", "a JSON object", line);
    lengths.push_back({.prompt_len = length_of(value.as_object(), "input_len", here),
                       .output_len = length_of(value.as_object(), "output_len", here)});
  }
  if (lengths.empty()) throw LoadError(where, "", "lines of lengths", "none");
  return lengths;
}

TrafficResult play_traffic(const Plan& plan, const TrafficOptions& options) {
  QUIRE_CHECK(plan.fits && options.users > 0);
  return Player(plan, options).play();
}

}  // namespace quire::plan
