#include "quire/bench/machine/ceiling_rounds.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "quire/bench/statistics.h"

namespace quire::bench {

namespace cpu = backend::cpu;

CeilingRounds::CeilingRounds(cpu::RunWorkers run, int num_workers, cpu::Level level, int64_t bytes)
    : run_(std::move(run)),
      num_workers_(num_workers),
      level_(level),
      probes_(cpu::probe_table(level)),
      memory_(bytes, MemoryTag::kOther, nullptr) {
  run_([this](int worker, int n) {
    std::fill(memory_.data() + memory_.size() * worker / n,
              memory_.data() + memory_.size() * (worker + 1) / n, std::byte{1});
  });
  double best = 0;
  for (const cpu::ReadProbe probe : probes_.read) {
    std::vector<double> rates;
    for (int i = 0; i < 5; ++i) {
      rates.push_back(cpu::read_rate(run_, probe, memory_.data(), memory_.size()));
    }
    if (fastest_ == nullptr || median(rates) > best) {
      best = median(rates);
      fastest_ = probe;
    }
  }
}

double CeilingRounds::read() {
  reads_.push_back(read_of(memory_.data(), memory_.size()));
  return reads_.back();
}

double CeilingRounds::read_of(const std::byte* data, int64_t bytes) const {
  return cpu::read_rate(run_, fastest_, data, bytes);
}

double CeilingRounds::peak(backend::ActType act) {
  const auto measure = [&](std::vector<double>& rates, const cpu::PeakProbe& probe) {
    rates.push_back(cpu::peak_rate(run_, probe));
    return rates.back();
  };
  if (act == backend::ActType::kI8) return measure(int8_, probes_.int8);
  if (act == backend::ActType::kBF16 && probes_.bf16.run != nullptr) {
    return measure(bf16_, probes_.bf16);
  }
  return measure(fp32_, probes_.fp32);
}

cpu::Ceilings CeilingRounds::medians() const {
  cpu::Ceilings ceilings;
  ceilings.cpu = cpu::processor_name();
  ceilings.level = cpu::level_name(level_);
  ceilings.threads = num_workers_;
  ceilings.read_gbs = median(reads_);
  ceilings.fp32_gflops = median(fp32_);
  ceilings.bf16_gflops = median(bf16_);
  ceilings.int8_gops = median(int8_);
  return ceilings;
}

}  // namespace quire::bench
