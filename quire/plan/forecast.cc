#include "quire/plan/forecast.h"

#include <algorithm>

namespace quire::plan {
namespace {

TimeRange range_of(const StepTime& step) {
  return {step.fast_seconds, step.slow_seconds};
}

}  // namespace

Forecast forecast(const Plan& plan, int64_t prompt_len, int64_t output_len) {
  Forecast result;
  result.prompt_len = prompt_len;
  result.output_len = output_len;
  bool first = true;
  for (const auto& step : prefill_steps(prompt_len, plan.options.record.max_tokens)) {
    StepTime time = step_time(plan, step);
    result.ttft.fast += time.fast_seconds;
    result.ttft.slow += time.slow_seconds;
    if (first) result.prefill = std::move(time);
    first = false;
  }
  const int64_t context = prompt_len + std::max<int64_t>(1, output_len / 2);
  for (int64_t batch = 1;; batch = std::min<int64_t>(2 * batch, plan.options.max_num_seqs)) {
    StepTime time = step_time(plan, decode_step(batch, context));
    result.batches.push_back({.batch = batch,
                              .context = context,
                              .fits = plan.fits && plan.concurrency(prompt_len + output_len) >=
                                                       static_cast<double>(batch),
                              .itl = range_of(time),
                              .operations = time.operations,
                              .bytes = time.bytes});
    if (batch == 1) result.decode = std::move(time);
    if (batch >= plan.options.max_num_seqs) break;
  }
  return result;
}

StepClock::StepClock(const Plan& plan) {
  const int64_t most = plan.options.record.max_tokens;
  constexpr int64_t kFar = 4096;
  for (int64_t tokens = 1;; tokens = std::min(2 * tokens, most)) {
    const int64_t rows = std::min<int64_t>(tokens, plan.options.max_num_seqs);
    // One chunk for what exceeds the rows, so that the step has both kinds.
    backend::dryrun::StepShape near = decode_step(rows, 1);
    near.rows.front().new_tokens += tokens - rows;
    near.rows.front().context_len += tokens - rows;
    backend::dryrun::StepShape far = near;
    for (auto& row : far.rows) row.context_len += kFar;
    const double base = step_time(plan, near).middle();
    const double with_context = step_time(plan, far).middle();
    samples_.push_back({.tokens = static_cast<double>(tokens),
                        .base = base,
                        .per_context = (with_context - base) / static_cast<double>(rows * kFar)});
    if (tokens >= most) break;
  }
}

double StepClock::seconds(int64_t tokens, int64_t context) const {
  const auto at = static_cast<double>(tokens);
  auto after = std::find_if(samples_.begin(), samples_.end(),
                            [at](const Sample& sample) { return sample.tokens >= at; });
  if (after == samples_.end()) --after;
  const Sample& high = *after;
  const Sample& low = after == samples_.begin() ? high : *(after - 1);
  const double span = high.tokens - low.tokens;
  const double share = span > 0 ? std::clamp((at - low.tokens) / span, 0.0, 1.0) : 0.0;
  const auto between = [share](double a, double b) { return a + share * (b - a); };
  return between(low.base, high.base) +
         between(low.per_context, high.per_context) * static_cast<double>(context);
}

}  // namespace quire::plan
