// Ceilings: what this processor can do at most, measured: the yardstick of kernels, plans and
// models.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>

#include "quire/backend/cpu/levels.h"

namespace quire::backend::cpu {

/// Rates are medians of repetitions. GB/s are 1e9 bytes; a multiply and an add count as two
/// operations; 0 means that the processor (at this level) has no such instruction, or that the size
/// of the cache is not known.
struct Ceilings {
  std::string cpu;    // processor_name()
  std::string level;  // instruction set of the loops: level_name()
  int threads = 0;

  double read_gbs = 0;             // memory in huge pages, the best number of streams, all threads
  double read_gbs_one_thread = 0;  // the same with one thread
  double l1_read_gbs = 0;          // all threads, each in its own lines
  double l2_read_gbs = 0;
  double l3_read_gbs = 0;

  double fp32_gflops = 0;  // fused multiply-adds where the level has them, all threads
  double bf16_gflops = 0;  // vdpbf16ps; 0 below avx512: bf16 operands then meet fp32 arithmetic
  double int8_gops = 0;    // vpdpbusd; below avx512 what 8-bit products can be had from
  double fp32_gflops_one_thread = 0;
  double bf16_gflops_one_thread = 0;
  double int8_gops_one_thread = 0;

  double fork_join_us = 0;  // an empty parallel region of base/thread_pool; the best, as the next
  double barrier_us = 0;    // a barrier inside one
};

struct CeilingsOptions {
  int threads = 0;  // 0 = default_thread_count()
  Level level = chosen_level();
  int repetitions = 7;  // of each figure
  /// Called before each figure is measured: figures done, of how many. May be empty.
  std::function<void(int done, int total)> on_progress = {};
};

/// Measures everything; two to three seconds, and about half a GiB of memory for that time. The
/// figures of a busy machine are too low. Throws LoadError when the memory cannot be had.
Ceilings measure_ceilings(const CeilingsOptions& options = {});

/// The processor's name, family, model and stepping, as /proc/cpuinfo has them.
std::string processor_name();

/// Where measured ceilings are kept: $XDG_CACHE_HOME/quire, else ~/.cache/quire; empty when neither
/// variable is set.
std::filesystem::path ceilings_folder();

/// What save_ceilings() kept of this processor with this many threads (0 = default_thread_count())
/// at this level; nothing where there is none, or it cannot be read.
std::optional<Ceilings> load_ceilings(int threads = 0, Level level = chosen_level(),
                                      const std::filesystem::path& folder = ceilings_folder());

/// Replaces the file for this processor, thread count and level. Returns false where it cannot be
/// written: a cache that is not there costs time, nothing else.
bool save_ceilings(const Ceilings& ceilings,
                   const std::filesystem::path& folder = ceilings_folder());

/// load_ceilings(), else measure_ceilings() and save_ceilings().
Ceilings known_ceilings(const CeilingsOptions& options = {});

}  // namespace quire::backend::cpu
