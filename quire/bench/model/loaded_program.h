// LoadedProgram: a model's program on a CPU backend, without scheduler and sampler: what benches
// and scoring step by hand.
#pragma once

#include <memory>

#include "quire/backend/cpu/cpu_backend.h"
#include "quire/backend/program.h"
#include "quire/llm/options.h"
#include "quire/runner/kv_store.h"

namespace quire::bench {

struct LoadedProgramOptions {
  llm::Options llm;          // model, types, threads, block_size, progress
  int64_t max_tokens = 512;  // T's bound
  int64_t max_logits = 64;   // R's bound
  int64_t kv_tokens = 512;   // that the cache holds at least
  bool time_ops = false;
};

class LoadedProgram {
 public:
  /// Reads and packs the weights. Throws LoadError.
  explicit LoadedProgram(const LoadedProgramOptions& options);

  const backend::Program& program() const { return *program_; }
  backend::cpu::CpuBackend& backend() { return *backend_; }
  int32_t block_tokens() const { return block_tokens_; }
  /// Writes zeros to all of the KV cache. Pages that nobody wrote to are all the same page of
  /// zeros, which never leaves a processor's cache.
  void commit_kv();

 private:
  int32_t block_tokens_;
  std::unique_ptr<backend::cpu::CpuBackend> backend_;
  std::unique_ptr<runner::KvStore> kv_;
  std::shared_ptr<const backend::Program> program_;
};

/// The program that `options` would load, recorded without reading a weight. Throws LoadError.
backend::Program count_program(const LoadedProgramOptions& options);

}  // namespace quire::bench
