// Times matmul kernels: kinds, shapes and row counts, as GB/s of weights read and GOP/s, beside
// what the processor can do (measured first, in the same run).
//   quire_matmul_bench [--threads N] [--in K] [--out N] [--kind NAME] [--rows M] [--warm]
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "bench/cpu_ceilings.h"
#include "quire/backend/cpu/levels.h"
#include "quire/backend/cpu/matmul_cases.h"

namespace quire::bench {
namespace {

using backend::ActType;
using backend::Offset;
using backend::PackedWeight;
using backend::WeightSpec;
using backend::cpu::KernelTable;
using backend::cpu::MatmulArgs;
namespace cpu = backend::cpu;

struct Options {
  int threads = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  int64_t in = 2048;
  int64_t out = 8192;
  std::string kind;   // empty = all
  int64_t rows = 0;   // 0 = several
  bool warm = false;  // the same weight every time, else copies enough to leave the caches
};

struct Kind {
  std::string name;
  WeightSpec spec;
  ActType act;
};

std::vector<Kind> kinds(int64_t in, int64_t out) {
  std::vector<Kind> all = {
      {"f32xf32", cpu::dense_spec(DType::kF32, in, out), ActType::kF32},
      {"bf16xf32", cpu::dense_spec(DType::kBF16, in, out), ActType::kF32},
      {"bf16xbf16", cpu::dense_spec(DType::kBF16, in, out), ActType::kBF16},
  };
  const auto coded = [&](const std::string& name, const WeightSpec& spec) {
    if (in % spec.group != 0) return;
    all.push_back({name + "xf32", spec, ActType::kF32});
    all.push_back({name + "xbf16", spec, ActType::kBF16});
    all.push_back({name + "xi8", spec, ActType::kI8});
  };
  coded("int8g32", cpu::int8_spec(in, out, 32));
  coded("int8", cpu::int8_spec(in, out, in));
  coded("int4g32", cpu::int4_spec(in, out, 32, Offset::kConstant, 8));
  coded("int4g32min", cpu::int4_spec(in, out, 32, Offset::kMin));
  coded("q4_k", cpu::two_levels(cpu::int4_spec(in, out, 32, Offset::kMin), 256));
  coded("q5_k", cpu::two_levels(cpu::int8_spec(in, out, 32, Offset::kMin), 256));
  coded("q6_k", cpu::two_levels(cpu::int8_spec(in, out, 16), 256));
  coded("int4g128z", cpu::int4_spec(in, out, 128, Offset::kZeros));
  coded("int4g128", cpu::int4_spec(in, out, 128, Offset::kConstant, 8));
  return all;
}

/// Copies of one packed weight, more than the caches hold.
class Copies {
 public:
  Copies(const PackedWeight& weight, bool warm, SpinPool& pool)
      : args_(cpu::whole_matmul(weight)),
        data_bytes_(round_up(weight.data.size())),
        scale_bytes_(round_up(weight.scales.size())) {
    constexpr int64_t kBeyondCaches = int64_t{512} << 20;
    count_ = warm ? 1 : std::max<int64_t>(1, kBeyondCaches / (data_bytes_ + scale_bytes_));
    buffer_ = HugeBuffer(count_ * (data_bytes_ + scale_bytes_), MemoryTag::kOther, nullptr);
    pool.run([&](int worker) {
      for (int64_t i = worker; i < count_; i += pool.num_workers()) {
        std::byte* at = buffer_.data() + i * (data_bytes_ + scale_bytes_);
        std::memcpy(at, weight.data.data(), static_cast<size_t>(weight.data.size()));
        if (weight.scales.size() == 0) continue;
        std::memcpy(at + data_bytes_, weight.scales.data(),
                    static_cast<size_t>(weight.scales.size()));
      }
    });
  }
  /// Arguments with the next copy's weights.
  MatmulArgs next() {
    next_ = (next_ + 1) % count_;
    const std::byte* at = buffer_.data() + next_ * (data_bytes_ + scale_bytes_);
    args_.w.data = at;
    args_.w.scales = reinterpret_cast<const uint16_t*>(at + data_bytes_);
    return args_;
  }

 private:
  static int64_t round_up(int64_t bytes) { return (bytes + 63) / 64 * 64; }

  MatmulArgs args_;
  int64_t data_bytes_;
  int64_t scale_bytes_;
  int64_t count_ = 1;
  int64_t next_ = 0;
  HugeBuffer buffer_;
};

/// The ceiling of the multiply-adds this kind runs on; 0 where it is not known.
double peak_of(const CpuCeilings& ceilings, ActType act) {
  if (act == ActType::kF32) return ceilings.fp32_gops;
  return act == ActType::kBF16 ? ceilings.bf16_gops : ceilings.int8_gops;
}

void bench_kind(const Kind& kind, const Options& options, const CpuCeilings& ceilings,
                SpinPool& pool) {
  const KernelTable table = cpu::kernel_table(cpu::chosen_level());
  const auto weight = cpu::random_weight(kind.spec, 1);
  Copies copies(*weight, options.warm, pool);
  std::vector<int64_t> counts = {1, 4, 8, 16, 32, 64, 512};
  if (options.rows > 0) counts = {options.rows};
  const int64_t panels = backend::num_panels(kind.spec.out);
  for (const int64_t rows : counts) {
    cpu::Activations a(rows, kind.spec.in, 2);
    a.hold(table, kind.act, kind.spec.group);
    const HugeBuffer out(rows * kind.spec.out * 4, MemoryTag::kOther, nullptr);
    const auto matmul = table.matmul[*cpu::matmul_kind(kind.spec, kind.act)];
    const double seconds = fastest(pool, 0.25, [&] {
      MatmulArgs args = copies.next();
      a.bind(args, 0, rows);
      args.out = reinterpret_cast<float*>(out.data());
      args.out_stride = kind.spec.out;
      pool.run([&](int worker) {
        MatmulArgs part = args;
        part.panel_begin = panels * worker / pool.num_workers();
        part.panel_end = panels * (worker + 1) / pool.num_workers();
        matmul(part);
      });
    });
    const double gb = static_cast<double>(weight->bytes()) / seconds / 1e9;
    const double gops =
        2.0 * static_cast<double>(rows * kind.spec.in * kind.spec.out) / seconds / 1e9;
    const double peak = peak_of(ceilings, kind.act);
    std::printf(
        "%-16s %6ld x %-6ld M=%-4ld %9.1f us %7.1f GB/s (%3.0f %%) %8.1f GOP/s (%3.0f %%)\n",
        kind.name.c_str(), kind.spec.in, kind.spec.out, rows, seconds * 1e6, gb,
        100 * gb / ceilings.read_gb, gops, peak > 0 ? 100 * gops / peak : 0.0);
    std::fflush(stdout);
  }
}

Options parse(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string_view name = argv[i];
    if (name == "--warm") {
      options.warm = true;
      continue;
    }
    if (i + 1 == argc) {
      std::fprintf(stderr, "%s needs a value\n", argv[i]);
      std::exit(1);
    }
    const char* value = argv[++i];
    if (name == "--threads") options.threads = std::atoi(value);
    if (name == "--in") options.in = std::atol(value);
    if (name == "--out") options.out = std::atol(value);
    if (name == "--kind") options.kind = value;
    if (name == "--rows") options.rows = std::atol(value);
  }
  return options;
}

int run(const Options& options) {
  SpinPool pool(options.threads);
  const CpuCeilings ceilings = measure_ceilings(pool);
  std::printf("%s, %d threads: read %.1f GB/s, fp32 %.0f, bf16 %.0f, int8 %.0f GOP/s\n",
              cpu::level_name(cpu::chosen_level()), options.threads, ceilings.read_gb,
              ceilings.fp32_gops, ceilings.bf16_gops, ceilings.int8_gops);
  for (const Kind& kind : kinds(options.in, options.out)) {
    if (options.kind.empty() || options.kind == kind.name) {
      bench_kind(kind, options, ceilings, pool);
    }
  }
  return 0;
}

}  // namespace
}  // namespace quire::bench

int main(int argc, char** argv) {
  return quire::bench::run(quire::bench::parse(argc, argv));
}
