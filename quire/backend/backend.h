// Backend: what runs a Program: packs weights, loads the program once, then one launch a step.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "quire/backend/program.h"
#include "quire/backend/step_meta.h"

namespace quire::backend {

/// A cache group's KV memory: `num_blocks` blocks in each of the group's layers, and where there is
/// one its share of the swap space, in which a block's layers lie behind each other.
struct KvSlab {
  std::byte* data =
      nullptr;  // layer l, block b at data + l * layer_stride + b * block_layer_bytes()
  int64_t layer_stride = 0;
  int64_t num_blocks = 0;
  std::byte* swap =
      nullptr;  // layer l, block b at swap + b * swap_block_stride + l * block_layer_bytes()
  int64_t swap_block_stride = 0;
  int64_t num_swap_blocks = 0;
};

/// One whole block of a group, moved within the pool, out to the swap space or back in.
struct BlockCopy {
  enum class Kind : uint8_t { kWithinPool, kSwapOut, kSwapIn };
  Kind kind = Kind::kWithinPool;
  int32_t group = 0;
  int32_t source = 0;
  int32_t destination = 0;
};

/// Called while weights are packed: bytes done so far of bytes in all.
using Progress = std::function<void(int64_t done, int64_t total)>;

class Backend {
 public:
  virtual ~Backend() = default;

  virtual std::string_view name() const = 0;
  /// Empty when the backend can run `op` of `program`; otherwise what is missing, for one
  /// LoadError.
  virtual std::string unsupported(const Program& program, const Op& op) const = 0;
  /// The activation type `auto` stands for with this weight.
  virtual ActType preferred_activation(const WeightSpec& spec) const = 0;
  /// Packs a weight, reading its rows in parallel. A counting backend returns empty buffers.
  virtual std::shared_ptr<const PackedWeight> pack(const WeightReader& reader) = 0;

  /// Takes the program and allocates its arena; `slabs` (one per cache group) must live until
  /// unload(), the next load() or the backend's end: late workers may read them after wait().
  virtual void load(std::shared_ptr<const Program> program, std::span<const KvSlab> slabs) = 0;
  /// Forgets the program; afterwards nothing reads its slabs.
  virtual void unload() {}
  /// Copies whole blocks before the next launch. The copies take effect in their order: one may
  /// read what an earlier one wrote, or overwrite what it read.
  virtual void copy_blocks(std::span<const BlockCopy> copies) = 0;
  /// Starts a step; the spans in `meta` must stay valid until wait() returns.
  virtual void launch(const StepMeta& meta) = 0;
  /// Waits for the launched step. Then logits() is [R][vocab_size] fp32, rows logits_stride()
  /// floats apart, valid until the next launch.
  virtual void wait() = 0;
  virtual const float* logits() const = 0;
  virtual int64_t logits_stride() const = 0;
  /// Runs fn(worker, num_workers) on every compute worker at once; for sampling and other
  /// row-parallel work.
  virtual void parallel(const std::function<void(int, int)>& fn) = 0;
  virtual int num_workers() const = 0;
};

}  // namespace quire::backend
