// StepPace: how many tokens a step may have while somebody waits for their next one, judged by how
// long the last steps took.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>

namespace quire::engine {

/// A step is taken to cost what the decoding rows cost by themselves (a step without prompts), and
/// beside it a time for each unit of work on prompts: a token that attends nothing (PromptWork).
/// Both are learned from the last few steps of their kind: the median of the first, the largest but
/// one of the second. So one slow step changes little. Prompts' share at most doubles from one step
/// to the next, so that what was learned from little work is not trusted for much.
///
/// Has no clock: durations come from outside, and equal ones give equal answers.
class StepPace {
 public:
  using Duration = std::chrono::nanoseconds;

  struct Options {
    Duration target{0};            // of a step, while rows decode
    double max_work = 0;           // the answer when none does
    Duration first_unit_guess{0};  // a unit's time before any was measured
  };
  explicit StepPace(const Options& options) : options_(options) {}

  /// A step took `duration`: one token in each of `decode_rows` rows, and `work` on prompts.
  void observe(int32_t decode_rows, double work, Duration duration);
  /// The work on prompts that the next step may have when `decode_rows` rows decode and so many
  /// prompts are not computed yet: as much as the target leaves time for, but at least kMinWork.
  double work(int32_t decode_rows, int32_t prompts) const;

  /// Prompts get on by this much in any case.
  static constexpr int32_t kMinWork = 32;
  /// So many prompts are a crowd: a step may take kCrowdTargets times the target. All prompts take
  /// the same time in few long steps as in many short ones, but each step holds every stream up.
  /// Not where decoding alone takes more than kCrowdDecoding of the target: then prompts are in so
  /// many steps that most gaps would be long ones.
  static constexpr int32_t kCrowd = 4;
  static constexpr int32_t kCrowdTargets = 2;
  static constexpr double kCrowdDecoding = 0.25;

 private:
  /// The share of the target that a step is planned to take; the rest is for noise.
  static constexpr double kPlannedShare = 0.75;

  /// The last few values, and one of them by rank.
  class Recent {
   public:
    void add(double value) {
      values_[static_cast<size_t>(next_++ % kSize)] = value;
      if (size_ < kSize) ++size_;
    }
    bool empty() const { return size_ == 0; }
    double median() const { return ranked((size_ - 1) / 2); }
    double largest() const { return ranked(size_ - 1); }
    double largest_but_one() const { return ranked(size_ < 2 ? 0 : size_ - 2); }

   private:
    static constexpr int32_t kSize = 5;
    double ranked(int32_t rank) const;
    double at(int32_t place) const { return values_[static_cast<size_t>(place)]; }
    std::array<double, kSize> values_{};
    int64_t next_ = 0;
    int32_t size_ = 0;
  };

  const Options options_;
  Recent decode_ns_;  // of steps without prompts
  Recent unit_ns_;
  Recent work_;  // of the steps that unit_ns_ is from
};

}  // namespace quire::engine
