// DryRunBackend: a backend that computes nothing and reads no weights; it counts bytes and
// operations of the program it is given.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "quire/backend/backend.h"
#include "quire/backend/dryrun/program_memory.h"
#include "quire/backend/dryrun/step_cost.h"

namespace quire::backend::dryrun {

class DryRunBackend final : public Backend {
 public:
  /// What another backend would answer to preferred_activation and unsupported, so that the program
  /// counted is the one that would run. Unset: bf16 for dense bf16 weights, int8 for codes;
  /// everything is supported.
  struct Stand {
    std::function<ActType(const WeightSpec&)> preferred_activation = {};
    std::function<std::string(const Program&, const Op&)> unsupported = {};
    /// How a weight would be held, where that is not as its file says: a format to be planned.
    std::function<WeightSpec(const WeightSpec&)> held_as = {};
  };
  DryRunBackend() = default;
  explicit DryRunBackend(Stand stand) : stand_(std::move(stand)) {}

  std::string_view name() const override { return "dryrun"; }
  std::string unsupported(const Program& program, const Op& op) const override;
  ActType preferred_activation(const WeightSpec& spec) const override;
  /// Keeps the specification only; no row is read.
  std::shared_ptr<const PackedWeight> pack(const WeightReader& reader) override;
  void load(std::shared_ptr<const Program> program, std::span<const KvSlab> slabs) override;
  void copy_blocks(std::span<const BlockCopy> copies) override;
  /// Counts the step; last_step() has the result.
  void launch(const StepMeta& meta) override;
  void wait() override {}
  /// Zeros.
  const float* logits() const override { return logits_.data(); }
  int64_t logits_stride() const override;
  void parallel(const std::function<void(int, int)>& fn) override { fn(0, 1); }
  int num_workers() const override { return 1; }

  /// Of the loaded program.
  ProgramMemory memory() const;
  const std::vector<OpCost>& last_step() const { return last_step_; }
  /// Bytes of all block copies so far.
  int64_t copied_bytes() const { return copied_bytes_; }

 private:
  Stand stand_;
  std::shared_ptr<const Program> program_;
  std::vector<OpCost> last_step_;
  std::vector<float> logits_;
  int64_t copied_bytes_ = 0;
};

}  // namespace quire::backend::dryrun
