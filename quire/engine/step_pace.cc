#include "quire/engine/step_pace.h"

#include <algorithm>

namespace quire::engine {

/// The value that `rank` of the others precede; equal ones are in the order of their places.
double StepPace::Recent::ranked(int32_t rank) const {
  for (int32_t i = 0; i < size_; ++i) {
    int32_t before = 0;
    for (int32_t j = 0; j < size_; ++j) {
      if (at(j) < at(i) || (at(j) == at(i) && j < i)) ++before;
    }
    if (before == rank) return at(i);
  }
  return 0;
}

void StepPace::observe(int32_t decode_rows, double work, Duration duration) {
  const auto ns = static_cast<double>(duration.count());
  if (work <= 0) {
    if (decode_rows > 0) decode_ns_.add(ns);
    return;
  }
  // Less tells more about the step than about the work.
  if (work < kMinWork) return;
  const double decoding = decode_rows == 0 || decode_ns_.empty() ? 0 : decode_ns_.median();
  // What decoding cost may be out of date: prompts take some of the time in any case.
  unit_ns_.add(std::max(ns - decoding, ns / 4) / work);
  work_.add(work);
}

double StepPace::work(int32_t decode_rows, int32_t prompts) const {
  if (decode_rows == 0) return options_.max_work;
  const double guess = static_cast<double>(options_.first_unit_guess.count());
  const double unit_ns = unit_ns_.empty() ? guess : unit_ns_.largest_but_one();
  const double decoding = decode_ns_.empty() ? 0 : decode_ns_.median();
  auto target = static_cast<double>(options_.target.count());
  if (prompts >= kCrowd && decoding <= kCrowdDecoding * target) target *= kCrowdTargets;
  const double time_left = kPlannedShare * target - decoding;
  double work = options_.max_work;
  if (unit_ns > 0) work = std::min(work, time_left / unit_ns);
  if (!work_.empty()) work = std::min(work, 2 * work_.largest());
  return std::max<double>(work, kMinWork);
}

}  // namespace quire::engine
