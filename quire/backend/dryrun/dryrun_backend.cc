#include "quire/backend/dryrun/dryrun_backend.h"

#include <utility>

#include "quire/base/check.h"

namespace quire::backend::dryrun {

std::string DryRunBackend::unsupported(const Program& program, const Op& op) const {
  return stand_.unsupported ? stand_.unsupported(program, op) : std::string();
}

ActType DryRunBackend::preferred_activation(const WeightSpec& spec) const {
  if (stand_.preferred_activation) return stand_.preferred_activation(spec);
  if (spec.layout != Layout::kDense) return ActType::kI8;
  return spec.dtype == DType::kBF16 ? ActType::kBF16 : ActType::kF32;
}

std::shared_ptr<const PackedWeight> DryRunBackend::pack(const WeightReader& reader) {
  auto weight = std::make_shared<PackedWeight>();
  weight->spec = stand_.held_as ? stand_.held_as(reader.spec()) : reader.spec();
  return weight;
}

void DryRunBackend::load(std::shared_ptr<const Program> program,
                         std::span<const KvSlab> /*slabs*/) {
  program_ = std::move(program);
  logits_.assign(static_cast<size_t>(program_->max_logits * program_->vocab_size), 0.0f);
}

void DryRunBackend::copy_blocks(std::span<const BlockCopy> copies) {
  QUIRE_CHECK(program_ != nullptr);
  for (const BlockCopy& copy : copies) {
    copied_bytes_ += 2 * program_->cache_groups[static_cast<size_t>(copy.group)].block_bytes();
  }
}

void DryRunBackend::launch(const StepMeta& meta) {
  QUIRE_CHECK(program_ != nullptr);
  StepShape step;
  step.num_logits = meta.num_logits();
  for (size_t i = 0; i < meta.context_len.size(); ++i) {
    step.rows.push_back({.new_tokens = meta.query_start[i + 1] - meta.query_start[i],
                         .context_len = meta.context_len[i]});
  }
  last_step_ = step_cost(*program_, step);
}

int64_t DryRunBackend::logits_stride() const {
  QUIRE_CHECK(program_ != nullptr);
  return program_->vocab_size;
}

ProgramMemory DryRunBackend::memory() const {
  QUIRE_CHECK(program_ != nullptr);
  return count_memory(*program_);
}

}  // namespace quire::backend::dryrun
