#include "quire/sched/scheduler_options.h"

#include <algorithm>
#include <string_view>

#include <fmt/format.h>

#include "quire/base/error.h"

namespace quire::sched {
namespace {

void check_positive(std::string_view name, int64_t value) {
  if (value <= 0) throw LoadError(name, "", "a positive number", fmt::format("{}", value));
}

void check_not_negative(std::string_view name, int64_t value) {
  if (value < 0) throw LoadError(name, "", "0 or more", fmt::format("{}", value));
}

/// The last token of a sequence is never an input, so its K and V are not stored.
int64_t stored_tokens(int64_t num_prompt, int64_t num_requested) {
  return num_prompt + std::max<int64_t>(num_requested - 1, 0);
}

}  // namespace

void check_options(const SchedulerOptions& options) {
  check_positive("--max-num-batched-tokens", options.max_num_batched_tokens);
  check_positive("--max-num-seqs", options.max_num_seqs);
  check_positive("--max-model-len", options.max_model_len);
  check_positive("logits rows", options.max_logits_rows);
  check_positive("--block-size", options.block_tokens);
  check_positive("KV cache blocks", options.num_blocks);
  check_positive("plans in flight", options.max_plans_in_flight);
  check_not_negative("--long-prefill-token-threshold", options.long_prefill_token_threshold);
  check_not_negative("swap space blocks", options.num_swap_blocks);
  if (!options.enable_chunked_prefill && options.max_num_batched_tokens < options.max_model_len) {
    throw LoadError("--max-num-batched-tokens", "",
                    fmt::format("at least --max-model-len ({}), since chunked prefill is off",
                                options.max_model_len),
                    fmt::format("{}", options.max_num_batched_tokens));
  }
}

std::optional<Error> refuse(const Request& request, const SchedulerOptions& options) {
  const auto prompt = static_cast<int64_t>(request.prompt.size());
  const bool unlimited = request.sampling.max_tokens < 0;
  const int64_t requested = unlimited ? 1 : request.sampling.max_tokens;
  const char* at_least = unlimited ? "at least " : "";
  if (prompt == 0) return invalid("The prompt has no tokens.", "prompt");
  if (request.n < 1 || request.n > options.max_num_seqs) {
    return invalid(
        fmt::format("n is {}; it must be from 1 to {}, the number of sequences that run at "
                    "once (--max-num-seqs).",
                    request.n, options.max_num_seqs),
        "n");
  }
  if (prompt + requested > options.max_model_len) {
    return invalid(
        fmt::format("The context is {} tokens long at most (--max-model-len); the prompt has "
                    "{} and {}{} were requested.",
                    options.max_model_len, prompt, at_least, requested),
        prompt < options.max_model_len ? "max_tokens" : "prompt");
  }
  if (stored_tokens(prompt, requested) > options.pool_tokens()) {
    return invalid(
        fmt::format("The KV cache holds {} tokens; the prompt has {} and {}{} were requested.",
                    options.pool_tokens(), prompt, at_least, requested),
        prompt <= options.pool_tokens() ? "max_tokens" : "prompt");
  }
  return std::nullopt;
}

int32_t token_limit(const Request& request, const SchedulerOptions& options) {
  const auto prompt = static_cast<int64_t>(request.prompt.size());
  if (request.sampling.max_tokens >= 0) {
    return static_cast<int32_t>(prompt + request.sampling.max_tokens);
  }
  return static_cast<int32_t>(std::min<int64_t>(options.max_model_len, options.pool_tokens() + 1));
}

}  // namespace quire::sched
