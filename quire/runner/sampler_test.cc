#include "quire/runner/sampler.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <random>
#include <set>

namespace quire::runner {
namespace {

constexpr int64_t kVocab = 5000;
constexpr float kInf = std::numeric_limits<float>::infinity();

sched::RowStart start_of(sched::SamplingSpec spec, std::vector<int32_t> prompt = {1},
                         int32_t row = 0, int32_t choice = 0) {
  sched::RowStart start;
  start.row = row;
  start.sequence = {.request = 7, .choice = choice};
  start.sampling = std::move(spec);
  start.prompt = std::move(prompt);
  return start;
}

sched::LogitsUse use_at(int32_t position, int32_t row = 0) {
  return {.kind = sched::LogitsUse::Kind::kSample, .row = row, .position = position};
}

std::vector<float> random_logits(uint32_t seed, int64_t vocab = kVocab, float deviation = 2.5f) {
  std::mt19937 generator(seed);
  std::normal_distribution<float> normal(0, deviation);
  std::vector<float> logits(static_cast<size_t>(vocab));
  for (float& logit : logits) logit = normal(generator);
  return logits;
}

class SamplerTest : public testing::Test {
 protected:
  Sampler make(int64_t vocab = kVocab) {
    return Sampler({.vocab_size = vocab, .max_rows = 4, .num_workers = 2});
  }
  /// Draws once at each of `count` positions.
  std::map<int32_t, int> histogram(const sched::SamplingSpec& spec, std::span<const float> logits,
                                   int count) {
    Sampler sampler = make(static_cast<int64_t>(logits.size()));
    sampler.start(start_of(spec));
    std::map<int32_t, int> seen;
    for (int i = 0; i < count; ++i) ++seen[sampler.sample(use_at(i), logits, 0)];
    return seen;
  }
};

/// Textbook distribution in doubles by full sort: temperature, min_p, top_k, top_p.
std::vector<double> reference_distribution(std::span<const float> logits,
                                           const sched::SamplingSpec& spec) {
  const size_t size = logits.size();
  std::vector<size_t> order(size);
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return logits[a] > logits[b]; });
  std::vector<double> p(size);
  for (size_t i = 0; i < size; ++i) {
    p[i] = std::exp((double{logits[i]} - double{logits[order[0]]}) / double{spec.temperature});
  }
  for (size_t i = 0; i < size; ++i) {
    if (p[i] < double{spec.min_p}) p[i] = 0;
  }
  if (spec.top_k > 0) {
    for (size_t i = static_cast<size_t>(spec.top_k); i < size; ++i) p[order[i]] = 0;
  }
  const double total = std::accumulate(p.begin(), p.end(), 0.0);
  double before = 0;
  for (const size_t i : order) {
    const double mass = p[i] / total;
    if (i != order[0] && before >= double{spec.top_p} && spec.top_p < 1.0f) p[i] = 0;
    before += mass;
  }
  const double kept = std::accumulate(p.begin(), p.end(), 0.0);
  for (double& value : p) value /= kept;
  return p;
}

/// Chi-square over classes of at least five expected draws, as a normal deviate (Wilson-Hilferty).
double chi_square_deviate(const std::map<int32_t, int>& seen, const std::vector<double>& p,
                          int draws) {
  double statistic = 0;
  double rest_expected = 0;
  double rest_seen = 0;
  int classes = 0;
  for (size_t i = 0; i < p.size(); ++i) {
    const double expected = p[i] * draws;
    const auto found = seen.find(static_cast<int32_t>(i));
    const double count = found == seen.end() ? 0 : found->second;
    if (p[i] <= 0) {
      EXPECT_EQ(count, 0) << "token " << i << " is excluded";
    } else if (expected < 5) {
      rest_expected += expected;
      rest_seen += count;
    } else {
      statistic += (count - expected) * (count - expected) / expected;
      ++classes;
    }
  }
  if (rest_expected >= 5) {
    statistic += (rest_seen - rest_expected) * (rest_seen - rest_expected) / rest_expected;
    ++classes;
  }
  const double freedom = classes - 1;
  const double spread = 2.0 / (9.0 * freedom);
  return (std::cbrt(statistic / freedom) - (1.0 - spread)) / std::sqrt(spread);
}

TEST_F(SamplerTest, GreedyTakesTheLargestAndTheLowestIdAmongEquals) {
  std::vector<float> logits = random_logits(1);
  logits[4321] = 50;
  logits[1234] = 50;
  Sampler sampler = make();
  sampler.start(start_of({.temperature = 0}));
  EXPECT_EQ(sampler.sample(use_at(0), logits, 0), 1234);
}

TEST_F(SamplerTest, DrawsFollowTheDistribution) {
  const std::vector<float> logits = random_logits(2, 300, 1.5f);
  const std::vector<sched::SamplingSpec> specs = {
      {.temperature = 1.0f, .seed = 11},
      {.temperature = 0.6f, .seed = 12},
      {.temperature = 1.0f, .top_k = 17, .seed = 13},
      {.temperature = 1.3f, .top_p = 0.8f, .seed = 14},
      {.temperature = 1.0f, .min_p = 0.05f, .seed = 15},
      {.temperature = 0.9f, .top_p = 0.7f, .top_k = 40, .min_p = 0.01f, .seed = 16},
      {.temperature = 30.0f, .top_p = 0.5f, .seed = 17},
  };
  constexpr int kDraws = 25000;
  for (const sched::SamplingSpec& spec : specs) {
    const std::vector<double> p = reference_distribution(logits, spec);
    const std::map<int32_t, int> seen = histogram(spec, logits, kDraws);
    EXPECT_LT(chi_square_deviate(seen, p, kDraws), 3.1) << "seed " << spec.seed;
    // The test has teeth: the same draws do not fit a slightly warmer distribution.
    sched::SamplingSpec warmer = spec;
    warmer.temperature *= 1.1f;
    std::vector<double> wrong = reference_distribution(logits, warmer);
    for (double& value : wrong) value = std::max(value, 1e-12);
    if (spec.temperature < 2) {
      EXPECT_GT(chi_square_deviate(seen, wrong, kDraws), 4.0);
    }
  }
}

TEST_F(SamplerTest, LimitsKeepExactlyTheMostLikely) {
  const std::vector<float> logits = random_logits(3, 2000, 0.5f);
  for (const sched::SamplingSpec& spec :
       {sched::SamplingSpec{.top_k = 3}, sched::SamplingSpec{.top_p = 0.004f},
        sched::SamplingSpec{.top_p = 0.0f}, sched::SamplingSpec{.top_k = 1},
        sched::SamplingSpec{.min_p = 0.9f}}) {
    const std::vector<double> p = reference_distribution(logits, spec);
    std::set<int32_t> expected;
    for (size_t i = 0; i < p.size(); ++i) {
      if (p[i] > 0) expected.insert(static_cast<int32_t>(i));
    }
    std::set<int32_t> seen;
    for (const auto& [token, count] : histogram(spec, logits, 2000)) seen.insert(token);
    EXPECT_EQ(seen, expected) << "top_k " << spec.top_k << " top_p " << spec.top_p;
  }
}

TEST_F(SamplerTest, EqualLogitsAreCutByIdAndNotByChance) {
  const std::vector<float> flat(1000, 0.25f);
  const auto seen = histogram({.temperature = 1, .top_k = 4}, flat, 500);
  ASSERT_EQ(seen.size(), 4U);
  EXPECT_EQ(seen.rbegin()->first, 3);
}

TEST_F(SamplerTest, NothingDependsOnBatchMatesWorkersOrHistory) {
  const sched::SamplingSpec spec{.temperature = 0.8f, .top_p = 0.9f, .seed = 99};
  std::vector<int32_t> alone;
  Sampler first = make();
  first.start(start_of(spec));
  for (int i = 0; i < 50; ++i) {
    alone.push_back(first.sample(use_at(i), random_logits(static_cast<uint32_t>(i)), 0));
  }
  Sampler second = make();
  second.start(start_of({.temperature = 1.5f, .top_k = 9, .seed = 1}, {1}, 0));
  second.start(start_of(spec, {1}, 3));
  for (int i = 0; i < 50; ++i) {
    const std::vector<float> logits = random_logits(static_cast<uint32_t>(i));
    second.sample(use_at(i + 1000, 0), random_logits(77), i % 2);
    EXPECT_EQ(second.sample(use_at(i, 3), logits, i % 2), alone[static_cast<size_t>(i)]);
  }
}

TEST_F(SamplerTest, SeedChoiceAndPositionEachChangeTheDraws) {
  const std::vector<float> logits = random_logits(4);
  const auto draws = [&](uint64_t seed, int32_t choice, int32_t from) {
    Sampler sampler = make();
    sampler.start(start_of({.temperature = 1, .seed = seed}, {1}, 0, choice));
    std::vector<int32_t> tokens;
    for (int i = 0; i < 20; ++i) tokens.push_back(sampler.sample(use_at(from + i), logits, 0));
    return tokens;
  };
  EXPECT_EQ(draws(5, 0, 0), draws(5, 0, 0));
  EXPECT_NE(draws(5, 0, 0), draws(6, 0, 0));
  EXPECT_NE(draws(5, 0, 0), draws(5, 1, 0));
  EXPECT_NE(draws(5, 0, 0), draws(5, 0, 100));
}

// Field report 10: repetition looks at prompt and output, presence and frequency at output only.
TEST_F(SamplerTest, PenaltiesLookWhereTheyShould) {
  const std::vector<float> logits = {2.0f, 1.9f, 1.8f, -5.0f};
  const auto greedy = [&](sched::SamplingSpec spec, std::vector<int32_t> prompt,
                          std::vector<int32_t> output) {
    spec.temperature = 0;
    Sampler sampler = make(4);
    sched::RowStart start = start_of(spec, std::move(prompt));
    start.output = std::move(output);
    sampler.start(start);
    return sampler.sample(use_at(0), logits, 0);
  };
  EXPECT_EQ(greedy({.repetition_penalty = 1.5f}, {0}, {}), 1);
  EXPECT_EQ(greedy({.repetition_penalty = 1.5f}, {0}, {1}), 2);
  EXPECT_EQ(greedy({.presence_penalty = 1.0f}, {0}, {}), 0);
  EXPECT_EQ(greedy({.presence_penalty = 1.0f}, {0}, {0}), 1);
  EXPECT_EQ(greedy({.frequency_penalty = 0.06f}, {0, 0, 0}, {}), 0);
  EXPECT_EQ(greedy({.frequency_penalty = 0.06f}, {}, {0}), 0);
  EXPECT_EQ(greedy({.frequency_penalty = 0.06f}, {}, {0, 0}), 1);
}

TEST_F(SamplerTest, OwnTokensCountAtOnce) {
  const std::vector<float> logits = {2.0f, 1.9f, 1.8f, -5.0f};
  Sampler sampler = make(4);
  sampler.start(start_of({.temperature = 0, .presence_penalty = 0.5f, .max_tokens = 8}));
  std::vector<int32_t> tokens;
  for (int i = 0; i < 4; ++i) tokens.push_back(sampler.sample(use_at(i), logits, 0));
  EXPECT_EQ(tokens, (std::vector<int32_t>{0, 1, 2, 0}));
}

TEST_F(SamplerTest, RepetitionPenaltyPushesNegativeLogitsDown) {
  const std::vector<float> logits = {-1.0f, -1.2f};
  Sampler sampler = make(2);
  sampler.start(start_of({.temperature = 0, .repetition_penalty = 1.5f}, {0}));
  EXPECT_EQ(sampler.sample(use_at(0), logits, 0), 1);
}

TEST_F(SamplerTest, MasksAndBias) {
  const std::vector<float> logits = {5, 4, 3, 2};
  const auto greedy = [&](sched::SamplingSpec spec) {
    spec.temperature = 0;
    Sampler sampler = make(4);
    sampler.start(start_of(spec));
    return sampler.sample(use_at(0), logits, 0);
  };
  EXPECT_EQ(greedy({.allowed_token_ids = {1, 3}}), 1);
  EXPECT_EQ(greedy({.logit_bias = {{3, 10.0f}}}), 3);
  EXPECT_EQ(greedy({.logit_bias = {{0, -100.0f}, {1, -100.0f}}}), 2);
  EXPECT_EQ(greedy({.min_tokens = 1, .stop_token_ids = {0, 1}}), 2);
  EXPECT_EQ(greedy({.min_tokens = 1, .stop_token_ids = {3}, .allowed_token_ids = {3}}), 3);
}

TEST_F(SamplerTest, MinTokensEndsItsMaskInTime) {
  const std::vector<float> logits = {5, 4};
  Sampler sampler = make(2);
  sampler.start(start_of({.temperature = 0, .min_tokens = 2, .stop_token_ids = {0}}));
  EXPECT_EQ(sampler.sample(use_at(0), logits, 0), 1);
  EXPECT_EQ(sampler.sample(use_at(1), logits, 0), 1);
  EXPECT_EQ(sampler.sample(use_at(2), logits, 0), 0);
}

TEST_F(SamplerTest, NanAndInfinityDoNotCrash) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (const float temperature : {0.0f, 1.0f}) {
    for (const float top_p : {1.0f, 0.5f}) {
      const auto draw = [&](std::vector<float> logits) {
        Sampler sampler = make(static_cast<int64_t>(logits.size()));
        sampler.start(start_of({.temperature = temperature, .top_p = top_p, .logprobs = 2}));
        const int32_t token = sampler.sample(use_at(0), logits, 0);
        PositionLogprobs seen;
        sampler.describe(logits, token, 2, 0, seen);
        return token;
      };
      EXPECT_EQ(draw({nan, 1, nan, nan}), 1);
      EXPECT_EQ(draw({nan, nan, nan}), 0);
      EXPECT_EQ(draw({-kInf, -kInf}), 0);
      EXPECT_EQ(draw({0, kInf, 3}), 1);
      EXPECT_EQ(draw({-kInf, -3e38f, 3e38f}), 2);
    }
  }
}

TEST_F(SamplerTest, LogprobsAreOfTheRawDistribution) {
  const std::vector<float> logits = random_logits(6);
  double sum = 0;
  for (const float logit : logits) sum += std::exp(double{logit});
  Sampler sampler = make();
  sampler.start(start_of({.temperature = 0.3f, .repetition_penalty = 2.0f, .logprobs = 5}, {42}));
  PositionLogprobs seen;
  sampler.describe(logits, 42, 5, 1, seen);
  EXPECT_NEAR(seen.chosen.logprob, double{logits[42]} - std::log(sum), 2e-6);
  std::vector<int32_t> order(logits.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int32_t a, int32_t b) {
    return logits[static_cast<size_t>(a)] > logits[static_cast<size_t>(b)];
  });
  EXPECT_EQ(order[static_cast<size_t>(seen.chosen.rank - 1)], 42);
  ASSERT_EQ(seen.top.size(), 5U);
  for (size_t i = 0; i < 5; ++i) {
    EXPECT_EQ(seen.top[i].token, order[i]);
    EXPECT_EQ(seen.top[i].rank, static_cast<int32_t>(i) + 1);
    EXPECT_NEAR(seen.top[i].logprob, double{logits[static_cast<size_t>(order[i])]} - std::log(sum),
                2e-6);
  }
}

}  // namespace
}  // namespace quire::runner
