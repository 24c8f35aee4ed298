// quire_sched_sim [SECONDS [FIRST_SEED]]: plays scenarios of one seed after the other for so long;
// SECONDS 0 plays FIRST_SEED alone.
#include <chrono>
#include <cstdint>
#include <cstdlib>

#include <fmt/format.h>

#include "quire/sched/sim/simulator.h"

int main(int argc, char** argv) {
  using Clock = std::chrono::steady_clock;
  const double seconds = argc > 1 ? std::strtod(argv[1], nullptr) : 60;
  const uint64_t first = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 1;
  const auto end = Clock::now() + std::chrono::duration<double>(seconds);
  quire::sched::sim::Totals totals;
  uint64_t seed = first;
  do {
    if (const auto wrong = quire::sched::sim::play_seed(seed, totals)) {
      fmt::print("{}\nevents={} seeds={} violations=1\n", *wrong, totals.events, seed - first + 1);
      return 1;
    }
    ++seed;
  } while (Clock::now() < end);
  fmt::print("events={} seeds={} violations=0\n", totals.events, seed - first);
  return 0;
}
