// KernelBench: every linear kernel and decode attention, timed in turns with the ceilings that they
// are measured by.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "quire/backend/cpu/ceilings.h"
#include "quire/backend/packed_weight.h"

namespace quire::bench {

/// W is [out, in].
struct LinearShape {
  int64_t out = 0;
  int64_t in = 0;
};

/// A way to hold a weight.
struct LinearLayout {
  const char* name;
  /// Nothing where the layout's groups do not fit `shape`.
  std::optional<backend::WeightSpec> (*spec)(const LinearShape& shape);
};

/// "fp32", "bf16", "int8", "int8-g32", "int4-g128", ...
const std::vector<LinearLayout>& linear_layouts();

/// "fp32", "bf16", "int8".
const char* act_name(backend::ActType act);

/// "8192x2048": out x in. Throws LoadError naming `option`.
LinearShape parse_shape(std::string_view text, const std::string& option);

struct AttentionCase {
  std::string name;
  int32_t num_heads = 0;
  int32_t num_kv_heads = 0;
  int32_t head_dim = 0;
};

struct KernelBenchOptions {
  int threads = 0;  // 0 = default_thread_count()
  int rounds = 5;
  std::vector<std::string> layouts = {};      // names; empty: all
  std::vector<std::string> activations = {};  // names; empty: all
  std::vector<LinearShape> shapes = {
      {8192, 2048}, {4096, 14336}, {2048, 2048}, {1536, 576}, {576, 576}};
  std::vector<int64_t> rows = {1, 2, 4, 8, 16, 32, 64, 512};  // M
  std::vector<int64_t> contexts = {512, 2048, 8192};          // of decode attention; empty: none
  std::vector<AttentionCase> attention = {{"32/8 heads of 128", 32, 8, 128},
                                          {"32/8 heads of 64", 32, 8, 64},
                                          {"9/3 heads of 64", 9, 3, 64}};
  /// Memory the weights (or the KV pages) of one measurement take at least, so that none is in a
  /// cache when its turn comes.
  int64_t cold_bytes = int64_t{128} << 20;
  int64_t ceiling_bytes = int64_t{256} << 20;  // that the read bandwidth is measured on
  std::function<void(int done, int total)> on_progress = {};
};

/// Seconds and rates are medians of the rounds; a share is the median of the rounds' own shares of
/// that round's ceiling: the larger of bytes / read bandwidth and operations / peak, over the time.
struct KernelTime {
  double seconds = 0;
  double gbs = 0;   // weight bytes, or KV pages
  double gops = 0;  // a multiply and an add are two
  double share = 0;
  bool memory_bound = false;  // which of the two ceilings binds
};

struct LinearResult {
  std::string layout;
  backend::ActType act = backend::ActType::kF32;
  LinearShape shape;
  int64_t rows = 0;
  KernelTime time;
};

struct AttentionResult {
  std::string name;
  std::string kv_dtype;
  int64_t context = 0;
  KernelTime time;
  double raw_read_gbs = 0;  // of the same pages, by nothing but loads
  double raw_share = 0;     // of that read, median of the rounds' own
};

struct KernelBenchResult {
  backend::cpu::Ceilings ceilings;  // medians over the whole run
  int rounds = 0;
  std::vector<LinearResult> linear;
  std::vector<AttentionResult> attention;
};

/// Throws LoadError for names that are no layout or activation type.
KernelBenchResult bench_kernels(const KernelBenchOptions& options);

/// The share of its ceiling that work reaches: the least time that the ceilings allow over the time
/// taken. A peak of 0 is not known and does not bind.
double ceiling_share(double bytes, double operations, double seconds, double read_gbs,
                     double peak_gops, bool& memory_bound);

}  // namespace quire::bench
