#include "quire/bench/kernels/kernel_bench.h"

#include <algorithm>
#include <charconv>
#include <memory>
#include <span>
#include <utility>

#include <fmt/format.h>

#include "quire/backend/cpu/cpu_backend.h"
#include "quire/backend/cpu/matmul_cases.h"
#include "quire/base/error.h"
#include "quire/bench/kernels/kernel_program.h"
#include "quire/bench/machine/ceiling_rounds.h"
#include "quire/bench/statistics.h"
#include "quire/bench/step_vectors.h"
#include "quire/runner/kv_store.h"

namespace quire::bench {
namespace {

using backend::ActType;
using backend::Layout;
using backend::Offset;
using backend::PackedWeight;
using backend::WeightSpec;
using backend::cpu::CpuBackend;
using Weight = std::shared_ptr<const PackedWeight>;
namespace cpu = backend::cpu;

constexpr int64_t kVocab = 64;  // of the table that activations come from
/// From here on arithmetic binds, wherever the weights lie.
constexpr int64_t kManyRows = 64;
constexpr int64_t kOperationsOfMany = 4'000'000'000;  // in a launch of that many rows

template <DType kType>
std::optional<WeightSpec> dense(const LinearShape& shape) {
  return cpu::dense_spec(kType, shape.in, shape.out);
}

/// kGroup 0: one scale an output.
template <int64_t kGroup>
std::optional<WeightSpec> int8(const LinearShape& shape) {
  const int64_t group = kGroup == 0 ? shape.in : kGroup;
  if (shape.in % group != 0) return std::nullopt;
  return cpu::int8_spec(shape.in, shape.out, group);
}

template <int64_t kGroup, Offset kOffset>
std::optional<WeightSpec> int4(const LinearShape& shape) {
  const int64_t group = kGroup == 0 ? shape.in : kGroup;
  if (shape.in % group != 0) return std::nullopt;
  return cpu::int4_spec(shape.in, shape.out, group, kOffset, kOffset == Offset::kConstant ? 8 : 0);
}

/// As K-quants are held: scales of two levels, 256 inputs the second.
template <Layout kLayout, int64_t kGroup, Offset kOffset>
std::optional<WeightSpec> super_blocks(const LinearShape& shape) {
  if (shape.in % 256 != 0) return std::nullopt;
  WeightSpec spec = cpu::int8_spec(shape.in, shape.out, kGroup, kOffset);
  spec.layout = kLayout;
  return cpu::two_levels(spec, 256);
}

bool wanted(const std::vector<std::string>& names, std::string_view name) {
  return names.empty() || std::find(names.begin(), names.end(), name) != names.end();
}

void check_names(const std::vector<std::string>& given, const std::vector<std::string>& known,
                 const char* option) {
  for (const std::string& name : given) {
    if (!wanted(known, name)) {
      throw LoadError(option, "", fmt::format("{}", fmt::join(known, ", ")), name);
    }
  }
}

/// What one measurement gathers over the rounds.
struct Samples {
  std::vector<double> seconds;
  std::vector<double> shares;
  bool memory_bound = false;

  KernelTime time(double bytes, double operations) const {
    KernelTime out;
    out.seconds = median(seconds);
    out.gbs = bytes / out.seconds / 1e9;
    out.gops = operations / out.seconds / 1e9;
    out.share = median(shares);
    out.memory_bound = memory_bound;
    return out;
  }
};

class KernelBench {
 public:
  explicit KernelBench(const KernelBenchOptions& options)
      : options_(options),
        level_(cpu::chosen_level()),
        backend_(backend_options(options, level_)),
        ceilings_([this](const std::function<void(int, int)>& fn) { backend_.parallel(fn); },
                  backend_.num_workers(), level_, options.ceiling_bytes) {}

  KernelBenchResult run() {
    total_ = count();
    for (const LinearLayout& layout : linear_layouts()) {
      if (!wanted(options_.layouts, layout.name)) continue;
      for (const LinearShape& shape : options_.shapes) {
        if (const auto spec = layout.spec(shape)) bench_weight(layout, shape, *spec);
      }
    }
    for (const AttentionCase& shape : options_.attention) {
      for (const int64_t context : options_.contexts) {
        bench_attention(shape, DType::kBF16, context);
        bench_attention(shape, DType::kF32, context);
      }
    }
    report();
    result_.rounds = options_.rounds;
    result_.ceilings = ceilings_.medians();
    return std::move(result_);
  }

 private:
  static CpuBackend::Options backend_options(const KernelBenchOptions& options, cpu::Level level) {
    CpuBackend::Options backend;
    backend.num_threads = options.threads;
    backend.level = level;
    backend.time_ops = true;
    return backend;
  }

  std::vector<ActType> acts_of(const WeightSpec& spec) const {
    std::vector<ActType> acts;
    for (const ActType act : {ActType::kF32, ActType::kBF16, ActType::kI8}) {
      if (!wanted(options_.activations, act_name(act))) continue;
      if (act == ActType::kI8 && spec.layout == backend::Layout::kDense) continue;
      acts.push_back(act);
    }
    return acts;
  }

  int count() const {
    int count = 0;
    for (const LinearLayout& layout : linear_layouts()) {
      if (!wanted(options_.layouts, layout.name)) continue;
      for (const LinearShape& shape : options_.shapes) {
        if (const auto spec = layout.spec(shape)) count += static_cast<int>(acts_of(*spec).size());
      }
    }
    return count + static_cast<int>(2 * options_.attention.size() * options_.contexts.size());
  }

  void report() {
    if (options_.on_progress) options_.on_progress(done_, total_);
  }

  Weight pack(const WeightSpec& spec) { return backend_.pack(cpu::RandomWeight(spec, 1)); }

  /// Empty when the backend runs all of the program, else what it lacks.
  std::string missing(const backend::Program& program) const {
    for (const backend::Op& op : program.ops) {
      if (std::string what = backend_.unsupported(program, op); !what.empty()) return what;
    }
    return {};
  }

  void bench_weight(const LinearLayout& layout, const LinearShape& shape, const WeightSpec& spec) {
    const Weight table = pack(cpu::dense_spec(DType::kF32, shape.in, kVocab));
    std::vector<Weight> weights = {pack(spec)};
    const int64_t copies = num_copies(weights.front()->bytes(), options_.cold_bytes);
    while (static_cast<int64_t>(weights.size()) < copies) weights.push_back(pack(spec));
    // Many rows compute so long at each weight that a few, cold after the ceilings were measured,
    // are enough.
    const int64_t operations = 2 * kManyRows * shape.in * shape.out;
    const auto few =
        static_cast<size_t>(std::clamp<int64_t>(kOperationsOfMany / operations, 3, copies));
    std::vector<int64_t> small;
    std::vector<int64_t> large;
    for (const int64_t rows : options_.rows) (rows < kManyRows ? small : large).push_back(rows);
    for (const ActType act : acts_of(spec)) {
      report();
      ++done_;
      bench_rows(layout, shape, act, table, weights, small);
      bench_rows(layout, shape, act, table, std::span(weights).first(few), large);
    }
  }

  void bench_rows(const LinearLayout& layout, const LinearShape& shape, ActType act,
                  const Weight& table, std::span<const Weight> weights,
                  const std::vector<int64_t>& row_counts) {
    if (row_counts.empty()) return;
    const KernelProgram kernel = linear_program(
        table, weights, act, *std::max_element(row_counts.begin(), row_counts.end()));
    if (!missing(*kernel.program).empty()) return;
    backend_.load(kernel.program, {});
    const int64_t weight_bytes = weights.front()->bytes();
    const auto bytes = static_cast<double>(weight_bytes);
    const auto operations = [&](int64_t rows) {
      return 2.0 * static_cast<double>(rows * shape.in * shape.out);
    };
    std::vector<StepVectors> steps;
    for (const int64_t rows : row_counts) {
      // Few rows are the last tokens of as many sequences, many are one sequence's prompt.
      StepVectors& step = steps.emplace_back(0, 0);
      const std::vector<int32_t> tokens = some_tokens(rows, kVocab, 0);
      if (rows > kManyRows) step.add_row(tokens, 0, 0);
      for (int64_t row = 0; rows <= kManyRows && row < rows; ++row) {
        step.add_row({&tokens[static_cast<size_t>(row)], 1}, 0, 0);
      }
      seconds_a_repetition(backend_, kernel, steps.back().meta());  // touches pages
    }
    std::vector<Samples> samples(steps.size());
    for (int round = 0; round < options_.rounds; ++round) {
      for (size_t i = 0; i < steps.size(); ++i) {
        const double read = ceilings_.read();
        const double peak = ceilings_.peak(act);
        const double seconds = seconds_a_repetition(backend_, kernel, steps[i].meta());
        samples[i].seconds.push_back(seconds);
        samples[i].shares.push_back(ceiling_share(bytes, operations(row_counts[i]), seconds, read,
                                                  peak, samples[i].memory_bound));
      }
    }
    for (size_t i = 0; i < steps.size(); ++i) {
      const int64_t rows = row_counts[i];
      result_.linear.push_back(
          {layout.name, act, shape, rows, samples[i].time(bytes, operations(rows))});
    }
  }

  void bench_attention(const AttentionCase& heads, DType dtype, int64_t context) {
    report();
    ++done_;
    constexpr int32_t kBlock = 16;
    backend::CacheGroupSpec group;
    group.num_layers = 1;
    group.num_kv_heads = heads.num_kv_heads;
    group.head_dim = heads.head_dim;
    group.dtype = dtype;
    group.block_tokens = kBlock;
    const int64_t blocks = (context + kBlock - 1) / kBlock;
    const int64_t bytes = blocks * group.block_layer_bytes();
    group.num_layers = static_cast<int32_t>(num_copies(bytes, options_.cold_bytes));
    backend::AttentionShape shape;
    shape.num_heads = heads.num_heads;
    shape.num_kv_heads = heads.num_kv_heads;
    shape.head_dim = heads.head_dim;
    shape.scale = 0.125f;
    const Weight table =
        pack(cpu::dense_spec(DType::kF32, int64_t{heads.num_heads} * heads.head_dim, kVocab));
    const KernelProgram kernel = attention_program(table, shape, group, 1);
    if (!missing(*kernel.program).empty()) return;
    const runner::KvStore store({.groups = {group}, .num_blocks = blocks, .ledger = nullptr});
    fill_pages(store, dtype);
    backend_.load(kernel.program, store.slabs());
    time_attention(heads, dtype, context, kernel, store, bytes);
  }

  /// Small numbers that are neither all alike nor denormal.
  void fill_pages(const runner::KvStore& store, DType dtype) {
    std::byte* data = store.slabs().front().data;
    const int64_t count = store.bytes() / (dtype == DType::kBF16 ? 2 : 4);
    backend_.parallel([&](int worker, int num_workers) {
      for (int64_t i = count * worker / num_workers; i < count * (worker + 1) / num_workers; ++i) {
        const float value = static_cast<float>((i * 2654435761) % 255 - 127) * 0x1p-8f;
        if (dtype == DType::kBF16) {
          reinterpret_cast<uint16_t*>(data)[i] = f32_to_bf16(value);
        } else {
          reinterpret_cast<float*>(data)[i] = value;
        }
      }
    });
  }

  void time_attention(const AttentionCase& heads, DType dtype, int64_t context,
                      const KernelProgram& kernel, const runner::KvStore& store, int64_t bytes) {
    // Scores and outputs: two multiply-adds for each number of a key and of a value.
    const double operations = 4.0 * static_cast<double>(context * heads.num_heads * heads.head_dim);
    StepVectors step(1, 16);
    step.add_row(some_tokens(1, kVocab, 1), context - 1, 0);
    seconds_a_repetition(backend_, kernel, step.meta());
    Samples samples;
    std::vector<double> raw;
    std::vector<double> raw_shares;
    for (int round = 0; round < options_.rounds; ++round) {
      const double read = ceilings_.read();
      const double peak = ceilings_.peak(dtype == DType::kBF16 ? ActType::kBF16 : ActType::kF32);
      raw.push_back(ceilings_.read_of(store.slabs().front().data, store.bytes()));
      const double seconds = seconds_a_repetition(backend_, kernel, step.meta());
      samples.seconds.push_back(seconds);
      samples.shares.push_back(ceiling_share(static_cast<double>(bytes), operations, seconds, read,
                                             peak, samples.memory_bound));
      raw_shares.push_back(static_cast<double>(bytes) / seconds / 1e9 / raw.back());
    }
    result_.attention.push_back({heads.name, std::string(dtype_name(dtype)), context,
                                 samples.time(static_cast<double>(bytes), operations), median(raw),
                                 median(raw_shares)});
  }

  const KernelBenchOptions& options_;
  const cpu::Level level_;
  CpuBackend backend_;
  CeilingRounds ceilings_;
  int done_ = 0;
  int total_ = 0;
  KernelBenchResult result_;
};

}  // namespace

const std::vector<LinearLayout>& linear_layouts() {
  static const std::vector<LinearLayout> kLayouts = {
      {"fp32", dense<DType::kF32>},
      {"bf16", dense<DType::kBF16>},
      {"fp16", dense<DType::kF16>},
      {"int8", int8<0>},
      {"int8-g32", int8<32>},
      {"int8-g128", int8<128>},
      {"int4", int4<0, Offset::kConstant>},
      {"int4-g32", int4<32, Offset::kConstant>},
      {"int4-g32-min", int4<32, Offset::kMin>},
      {"int4-g64", int4<64, Offset::kConstant>},
      {"int4-g128", int4<128, Offset::kConstant>},
      {"int4-g128-zeros", int4<128, Offset::kZeros>},
      {"q4_k", super_blocks<Layout::kInt4Group, 32, Offset::kMin>},
      {"q5_k", super_blocks<Layout::kInt8Group, 32, Offset::kMin>},
      {"q6_k", super_blocks<Layout::kInt8Group, 16, Offset::kNone>},
  };
  return kLayouts;
}

const char* act_name(ActType act) {
  switch (act) {
    case ActType::kF32:
      return "fp32";
    case ActType::kBF16:
      return "bf16";
    case ActType::kI8:
      return "int8";
  }
  return "?";
}

LinearShape parse_shape(std::string_view text, const std::string& option) {
  LinearShape shape;
  const char* end = text.data() + text.size();
  const auto [middle, error] = std::from_chars(text.data(), end, shape.out);
  bool fine = error == std::errc() && middle != end && *middle == 'x';
  if (fine) {
    const auto [rest, second] = std::from_chars(middle + 1, end, shape.in);
    fine = second == std::errc() && rest == end;
  }
  constexpr int64_t kMost = 1 << 20;
  fine = fine && shape.out >= 1 && shape.out <= kMost && shape.in >= 8 && shape.in <= kMost &&
         shape.in % 8 == 0;
  if (!fine) {
    throw LoadError(option, "", "outputs x inputs such as 8192x2048, inputs a multiple of 8",
                    std::string(text));
  }
  return shape;
}

double ceiling_share(double bytes, double operations, double seconds, double read_gbs,
                     double peak_gops, bool& memory_bound) {
  const double reading = read_gbs > 0 ? bytes / read_gbs / 1e9 : 0;
  const double computing = peak_gops > 0 ? operations / peak_gops / 1e9 : 0;
  memory_bound = reading >= computing;
  return std::max(reading, computing) / seconds;
}

KernelBenchResult bench_kernels(const KernelBenchOptions& options) {
  std::vector<std::string> names;
  for (const LinearLayout& layout : linear_layouts()) names.emplace_back(layout.name);
  check_names(options.layouts, names, "--layouts");
  check_names(options.activations, {"fp32", "bf16", "int8"}, "--activations");
  if (options.rounds < 1 || options.rows.empty() || options.cold_bytes < 1) {
    throw LoadError("bench kernels", "rounds, row counts and memory must be positive");
  }
  for (const int64_t rows : options.rows) {
    if (rows < 1 || rows > 65536) {
      throw LoadError("--m", "", "1 to 65536", std::to_string(rows));
    }
  }
  for (const int64_t context : options.contexts) {
    if (context < 1 || context > 131072) {
      throw LoadError("--contexts", "", "1 to 131072", std::to_string(context));
    }
  }
  return KernelBench(options).run();
}

}  // namespace quire::bench
