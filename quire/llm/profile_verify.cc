#include "quire/llm/profile_verify.h"

#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <memory>
#include <random>

#include <fmt/format.h>

#include "quire/base/error.h"
#include "quire/base/memory_ledger.h"
#include "quire/llm/llm.h"

namespace quire::llm {
namespace {

constexpr int64_t kMiB = int64_t{1} << 20;

using Prompts = std::vector<std::vector<int32_t>>;

/// Random, so that no prefix is shared.
Prompts random_prompts(std::mt19937& random, int64_t count, int64_t length, int64_t vocab) {
  std::uniform_int_distribution<int32_t> token(0, static_cast<int32_t>(vocab) - 1);
  Prompts prompts(static_cast<size_t>(count));
  for (auto& prompt : prompts) {
    prompt.resize(static_cast<size_t>(length));
    for (int32_t& id : prompt) id = token(random);
  }
  return prompts;
}

void run(LLM& llm, const Prompts& prompts, const SamplingParams& params) {
  for (const RequestOutput& output : llm.generate(prompts, params)) {
    if (output.error) throw LoadError("verify", output.error->message);
  }
}

/// Steps of all tokens, of all rows, and of all logits rows.
void run_peak_batch(LLM& llm) {
  const Options& options = llm.options();
  const int64_t vocab = llm.config().vocab_size;
  const int64_t longest = std::max<int64_t>(1, llm.max_model_len() - 2);
  std::mt19937 random(1);
  SamplingParams params;
  params.temperature = 1.0F;
  params.top_p = 0.9F;
  params.seed = 1;
  params.ignore_eos = true;
  params.max_tokens = 2;
  // The engine starts on the first prompt alone; what came meanwhile fills the steps after it.
  const int64_t length = std::min(longest, options.max_num_batched_tokens);
  const int64_t filling = (2 * options.max_num_batched_tokens + length - 1) / length + 1;
  run(llm, random_prompts(random, std::min<int64_t>(filling, options.max_num_seqs), length, vocab),
      params);
  // The choices of a request run together.
  params.max_tokens = static_cast<int32_t>(std::min<int64_t>(32, longest));
  params.n = std::min(options.max_num_seqs, llm.engine().options().max_choices);
  run(llm, random_prompts(random, (options.max_num_seqs + params.n - 1) / params.n, 1, vocab),
      params);
  params.n = 1;
  params.prompt_logprobs = 0;
  params.max_tokens = 0;
  const int64_t scored = std::min<int64_t>(
      {longest, options.max_num_batched_tokens, 2 * std::max<int64_t>(64, options.max_num_seqs)});
  run(llm, random_prompts(random, 2, scored, vocab), params);
}

std::vector<VerifiedLine> compare(const Prediction& prediction, const MemorySnapshot& ledger) {
  const MemoryReport& plan = prediction.plan;
  const auto line = [&](MemoryTag tag, int64_t predicted) {
    return VerifiedLine{.name = std::string(memory_tag_name(tag)),
                        .predicted = predicted,
                        .measured = ledger[tag].peak};
  };
  VerifiedLine tokenizer = line(MemoryTag::kTokenizer, plan.tokenizer);
  if (prediction.tokenizer_is_estimate) tokenizer.tolerance = resident_tolerance(0);
  return {line(MemoryTag::kWeights, plan.weights),
          line(MemoryTag::kPackedCopies, plan.packed_copies),
          line(MemoryTag::kKvCache, plan.kv_cache),
          line(MemoryTag::kArena, plan.arena),
          line(MemoryTag::kWorkerScratch, plan.worker_scratch),
          tokenizer,
          line(MemoryTag::kOther, plan.other)};
}

}  // namespace

bool VerifiedLine::ok() const {
  return std::abs(difference()) <= tolerance;
}

bool Verification::ok() const {
  return std::all_of(lines.begin(), lines.end(),
                     [](const VerifiedLine& line) { return line.ok(); });
}

int64_t resident_tolerance(int64_t predicted) {
  return std::max(32 * kMiB, predicted / 50);
}

Verification verify_memory(const Options& options) {
  const int64_t before = read_process_memory().rss;
  return verify_memory(options, {.plan = count_memory(options), .process_bytes = before});
}

Verification verify_memory(const Options& given, const Prediction& prediction) {
  Verification result;
  reset_peak_rss();
  result.before = read_process_memory();
  result.plan = prediction.plan;
  result.process_bytes =
      prediction.process_bytes > 0 ? prediction.process_bytes : result.before.rss;
  Options options = given;
  options.num_gpu_blocks_override = result.plan.num_blocks;  // what is available may have changed
  options.swap_space_bytes = 0;  // not part of the plan: taken as far as it is used
  options.poison_kv_cache = true;
  options.commit_kv_cache = false;
  options.ledger = std::make_shared<MemoryLedger>();
  options.on_step = [&result](const engine::StepStats& step) {
    ++result.num_steps;
    result.most_tokens = std::max(result.most_tokens, step.num_tokens);
    result.most_rows = std::max(result.most_rows, step.num_rows);
  };
  LLM llm(options);
  run_peak_batch(llm);
  result.after = read_process_memory();
  result.lines = compare(prediction, options.ledger->snapshot());
  const int64_t resident = result.process_bytes + result.plan.total();
  const int64_t tolerance = resident_tolerance(resident);
  result.lines.push_back({"resident", resident, result.after.rss, tolerance});
  result.lines.push_back({"resident, peak", resident, result.after.peak_rss, tolerance});
  llm.engine().stop();
  return result;
}

std::string format_verification(const Verification& verification) {
  std::string text = fmt::format("{:<16}{:>15}{:>15}{:>13}  {}\n", "bytes", "predicted", "measured",
                                 "difference", "");
  for (const VerifiedLine& line : verification.lines) {
    std::string verdict = line.ok() ? "exact" : "DIFFERS";
    if (line.tolerance > 0) {
      verdict =
          fmt::format("{} {}", line.ok() ? "within" : "NOT WITHIN", format_bytes(line.tolerance));
    }
    fmt::format_to(std::back_inserter(text), "{:<16}{:>15}{:>15}{:>+13}  {}\n", line.name,
                   line.predicted, line.measured, line.difference(), verdict);
  }
  fmt::format_to(std::back_inserter(text),
                 "Resident is predicted as {} of the program itself and {} of the plan; a swap "
                 "space comes on top, as far as a full cache makes use of it.\n"
                 "Measured over {} steps, of {} tokens and {} rows at most.\n",
                 format_bytes(verification.process_bytes), format_bytes(verification.plan.total()),
                 verification.num_steps, verification.most_tokens, verification.most_rows);
  return text;
}

}  // namespace quire::llm
