#include "quire/runner/sampler.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "quire/base/check.h"
#include "quire/runner/philox.h"
#include "quire/runner/softmax.h"

namespace quire::runner {
namespace {

constexpr float kLowest = -std::numeric_limits<float>::infinity();
constexpr float kGreedyBelow = 1e-5f;     // temperatures below this mean the most likely token
constexpr float kBucketsPerUnit = 64.0f;  // of (score - largest) / temperature

bool has_penalty(const sched::SamplingSpec& spec) {
  return spec.repetition_penalty != 1.0f || spec.presence_penalty != 0.0f ||
         spec.frequency_penalty != 0.0f;
}

float penalized(float score, const TokenCounts::Entry& entry, const sched::SamplingSpec& spec) {
  if (spec.repetition_penalty != 1.0f) {
    score = score > 0 ? score / spec.repetition_penalty : score * spec.repetition_penalty;
  }
  if (entry.num_output > 0) {
    score -= spec.frequency_penalty * static_cast<float>(entry.num_output);
    score -= spec.presence_penalty;
  }
  return score;
}

}  // namespace

Sampler::Sampler(Options options) : options_(options) {
  QUIRE_CHECK(options.vocab_size > 0 && options.max_rows > 0 && options.num_workers > 0);
  rows_.resize(static_cast<size_t>(options.max_rows));
  scratch_.resize(static_cast<size_t>(options.num_workers));
  const auto vocab = static_cast<size_t>(options.vocab_size);
  for (Scratch& scratch : scratch_) {
    scratch.scores.resize(vocab);
    scratch.weights.resize(vocab);
    scratch.block_sums.resize(static_cast<size_t>(num_sum_blocks(options.vocab_size)));
    scratch.candidates.reserve(vocab);
    scratch.edge.reserve(vocab);
    scratch.bucket_counts.resize(kBuckets);
    scratch.bucket_masses.resize(kBuckets);
  }
}

int64_t Sampler::scratch_bytes(int64_t vocab_size, int num_workers) {
  constexpr int64_t kPerToken = 2 * sizeof(float) + 2 * sizeof(int32_t);
  constexpr int64_t kPerBucket = sizeof(int32_t) + sizeof(double);
  return num_workers * (vocab_size * kPerToken + int64_t{kBuckets} * kPerBucket +
                        num_sum_blocks(vocab_size) * int64_t{sizeof(double)});
}

void Sampler::start(const sched::RowStart& start) {
  Row& row = rows_[static_cast<size_t>(start.row)];
  row.choice = start.sequence.choice;
  row.num_output = static_cast<int32_t>(start.output.size());
  row.spec = start.sampling;
  row.counts_tokens = has_penalty(row.spec);
  row.plain = !row.counts_tokens && row.spec.logit_bias.empty() &&
              row.spec.allowed_token_ids.empty() && row.spec.min_tokens <= 0;
  if (!row.counts_tokens) return;
  const int64_t tokens =
      static_cast<int64_t>(start.prompt.size()) +
      std::max<int64_t>(row.spec.max_tokens, static_cast<int64_t>(start.output.size()));
  row.counts.reset(std::min(tokens, options_.vocab_size));
  for (const int32_t token : start.prompt) row.counts.add_prompt(token);
  for (const int32_t token : start.output) row.counts.add_output(token);
}

const Sampler::Row& Sampler::row_of(const sched::LogitsUse& use) const {
  return rows_[static_cast<size_t>(use.row)];
}

int32_t Sampler::sample(const sched::LogitsUse& use, std::span<const float> logits, int worker) {
  Row& row = rows_[static_cast<size_t>(use.row)];
  const bool greedy = row.spec.temperature < kGreedyBelow;
  int32_t token = 0;
  if (greedy && row.plain) {
    token = argmax(logits);
  } else {
    Scratch& scratch = scratch_[static_cast<size_t>(worker)];
    load_scores(logits, scratch.scores);
    adjust(row, scratch.scores);
    token = argmax(scratch.scores);
    const float largest = scratch.scores[static_cast<size_t>(token)];
    if (!(largest > kLowest)) {  // nothing is left: masks that exclude each other, or NaN
      token = row.spec.allowed_token_ids.empty() ? 0 : row.spec.allowed_token_ids.front();
    } else if (!greedy) {
      token = draw(row, largest, philox_uniform(row.spec.seed, row.choice, use.position), scratch);
    }
  }
  if (row.counts_tokens) row.counts.add_output(token);
  ++row.num_output;
  return token;
}

/// Masks, bias and penalties, in place.
void Sampler::adjust(const Row& row, std::span<float> scores) const {
  if (row.plain) return;
  const sched::SamplingSpec& spec = row.spec;
  if (!spec.allowed_token_ids.empty()) {
    // Sorted and distinct: the engine made them so. What lies between two of them is masked.
    size_t begin = 0;
    for (const int32_t token : spec.allowed_token_ids) {
      const auto keep = static_cast<size_t>(token);
      if (keep > begin)
        std::fill(scores.begin() + static_cast<int64_t>(begin),
                  scores.begin() + static_cast<int64_t>(keep), kLowest);
      begin = keep + 1;
    }
    std::fill(scores.begin() + static_cast<int64_t>(begin), scores.end(), kLowest);
  }
  if (row.num_output < spec.min_tokens) {
    for (const int32_t token : spec.stop_token_ids) scores[static_cast<size_t>(token)] = kLowest;
  }
  for (const auto& [token, bias] : spec.logit_bias) scores[static_cast<size_t>(token)] += bias;
  if (!row.counts_tokens) return;
  for (const TokenCounts::Entry& entry : row.counts.entries()) {
    float& score = scores[static_cast<size_t>(entry.token)];
    score = penalized(score, entry, spec);
  }
}

/// Inverts the cumulative distribution of what temperature, min_p, top_k and top_p leave.
int32_t Sampler::draw(const Row& row, float largest, double uniform, Scratch& scratch) {
  const sched::SamplingSpec& spec = row.spec;
  const std::span<const float> scores = scratch.scores;
  const float factor = 1.0f / spec.temperature;
  const double total = exp_weights(scores, largest, factor, scratch.weights, scratch.block_sums);
  const bool limits_count = spec.top_k > 0 && spec.top_k < options_.vocab_size;
  const bool limits_mass = spec.top_p < 1.0f;
  if (!limits_count && !limits_mass && spec.min_p <= 0.0f) {
    return draw_index(scratch.weights, scratch.block_sums, uniform * total);
  }
  double mass = gather(row, total, scratch);
  constexpr double kAnyMass = std::numeric_limits<double>::infinity();
  if (limits_count) {
    narrow(scratch, factor, largest, spec.top_k, kAnyMass);
    mass = mass_of(scratch);
  }
  if (limits_mass) {
    // What gather() left out counts where only top_p limits.
    const double whole = limits_count || spec.min_p > 0 ? mass : total;
    narrow(scratch, factor, largest, options_.vocab_size, double{spec.top_p} * whole);
    mass = mass_of(scratch);
  }
  double target = uniform * mass;
  for (const int32_t token : scratch.candidates) {
    const auto weight = static_cast<double>(scratch.weights[static_cast<size_t>(token)]);
    if (target < weight) return token;
    target -= weight;
  }
  return scratch.candidates.back();
}

/// Collects what top_k and top_p may keep: everything of at least min_p, but where the most likely
/// tokens alone are enough, no more than those. Returns their mass.
double Sampler::gather(const Row& row, double total, Scratch& scratch) const {
  const sched::SamplingSpec& spec = row.spec;
  const float floor = std::max(spec.min_p, std::numeric_limits<float>::min());
  double mass = 0;
  for (const float cut : {1e-2f, 1e-4f, 0.0f}) {  // the largest weight is 1
    const float at_least = std::max(floor, cut);
    scratch.candidates.clear();
    for (size_t i = 0; i < scratch.weights.size(); ++i) {
      if (scratch.weights[i] >= at_least) scratch.candidates.push_back(static_cast<int32_t>(i));
    }
    mass = mass_of(scratch);
    if (at_least <= floor) break;
    const bool enough = spec.top_k > 0
                            ? static_cast<int64_t>(scratch.candidates.size()) >= spec.top_k
                            : mass >= double{spec.top_p} * total;
    if (enough && spec.min_p <= 0) break;
  }
  return mass;
}

double Sampler::mass_of(const Scratch& scratch) {
  double sum = 0;
  for (const int32_t token : scratch.candidates) {
    sum += static_cast<double>(scratch.weights[static_cast<size_t>(token)]);
  }
  return sum;
}

/// Keeps the most likely candidates, lower ids first among equals, until there are `max_count` of
/// them or their weights sum to `max_mass`; at least one. Only the histogram bucket in which that
/// happens is sorted.
void Sampler::narrow(Scratch& scratch, float factor, float largest, int64_t max_count,
                     double max_mass) {
  const auto bucket_of = [&](int32_t token) {
    const float below = (largest - scratch.scores[static_cast<size_t>(token)]) * factor;
    return static_cast<size_t>(std::min(below * kBucketsPerUnit, static_cast<float>(kBuckets - 1)));
  };
  const auto weight_of = [&](int32_t token) {
    return static_cast<double>(scratch.weights[static_cast<size_t>(token)]);
  };
  std::fill(scratch.bucket_counts.begin(), scratch.bucket_counts.end(), 0);
  std::fill(scratch.bucket_masses.begin(), scratch.bucket_masses.end(), 0.0);
  for (const int32_t token : scratch.candidates) {
    const size_t bucket = bucket_of(token);
    ++scratch.bucket_counts[bucket];
    scratch.bucket_masses[bucket] += weight_of(token);
  }
  int64_t count = 0;
  double mass = 0;
  size_t last = 0;
  for (; last < kBuckets; ++last) {
    if (count + scratch.bucket_counts[last] >= max_count ||
        mass + scratch.bucket_masses[last] >= max_mass) {
      break;
    }
    count += scratch.bucket_counts[last];
    mass += scratch.bucket_masses[last];
  }
  if (last == kBuckets) return;

  scratch.edge.clear();
  size_t kept = 0;
  for (const int32_t token : scratch.candidates) {
    const size_t bucket = bucket_of(token);
    if (bucket < last) scratch.candidates[kept++] = token;
    if (bucket == last) scratch.edge.push_back(token);
  }
  scratch.candidates.resize(kept);
  std::sort(scratch.edge.begin(), scratch.edge.end(), [&](int32_t a, int32_t b) {
    const float left = scratch.scores[static_cast<size_t>(a)];
    const float right = scratch.scores[static_cast<size_t>(b)];
    return left != right ? left > right : a < b;
  });
  for (const int32_t token : scratch.edge) {
    if (!scratch.candidates.empty() && (count >= max_count || mass >= max_mass)) break;
    scratch.candidates.push_back(token);
    ++count;
    mass += weight_of(token);
  }
}

int32_t Sampler::num_logprobs(const sched::LogitsUse& use) const {
  const sched::SamplingSpec& spec = row_of(use).spec;
  return use.kind == sched::LogitsUse::Kind::kSample ? spec.logprobs : spec.prompt_logprobs;
}

void Sampler::describe(std::span<const float> logits, int32_t token, int32_t num_top, int worker,
                       PositionLogprobs& out) {
  Scratch& scratch = scratch_[static_cast<size_t>(worker)];
  const float largest = load_scores(logits, scratch.scores);
  const std::span<const float> scores = scratch.scores;
  double log_sum = 0;
  if (largest > kLowest) {
    log_sum = std::log(exp_weights(scores, largest, 1.0f, scratch.weights, scratch.block_sums)) +
              static_cast<double>(largest);
  }
  const auto logprob = [&](int32_t id) {
    return static_cast<float>(static_cast<double>(scores[static_cast<size_t>(id)]) - log_sum);
  };
  const auto more_likely = [&](int32_t a, int32_t b) {
    const float left = scores[static_cast<size_t>(a)];
    const float right = scores[static_cast<size_t>(b)];
    return left != right ? left > right : a < b;
  };
  out.top.clear();
  const auto room = std::min(static_cast<size_t>(std::max(num_top, 0)), scores.size());
  std::vector<int32_t>& best = scratch.candidates;
  best.clear();
  // Ids come in ascending order: an equal score never displaces one that is there.
  float worst = kLowest;
  for (int32_t id = 0; room > 0 && id < static_cast<int32_t>(scores.size()); ++id) {
    if (best.size() == room && !(scores[static_cast<size_t>(id)] > worst)) continue;
    if (best.size() == room) best.pop_back();
    best.insert(std::upper_bound(best.begin(), best.end(), id, more_likely), id);
    worst = scores[static_cast<size_t>(best.back())];
  }
  const float own = scores[static_cast<size_t>(token)];
  const auto before = scores.first(static_cast<size_t>(token));
  const auto rank = static_cast<int32_t>(1 + count_above(scores, own) +
                                         std::count(before.begin(), before.end(), own));
  out.chosen = {.token = token, .logprob = logprob(token), .rank = rank};
  for (size_t i = 0; i < best.size(); ++i) {
    out.top.push_back({best[i], logprob(best[i]), static_cast<int32_t>(i) + 1});
  }
}

}  // namespace quire::runner
