// ReferenceBackend: a program read aloud: every operation in the plainest loops, so that golden
// tests can tell a wrong model from a wrong kernel.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "quire/backend/backend.h"

namespace quire::golden {

/// Tensors are fp32 vectors of their own, weights are expanded to fp32, and KV rows lie by slot
/// outside the slabs (rounded to bf16 where the group says so). Sums run in double. Prepared
/// activations keep fp32 form but are rounded as bf16 or int8 would be.
class ReferenceBackend final : public backend::Backend {
 public:
  std::string_view name() const override { return "reference"; }
  std::string unsupported(const backend::Program& program, const backend::Op& op) const override;
  backend::ActType preferred_activation(const backend::WeightSpec& spec) const override;
  std::shared_ptr<const backend::PackedWeight> pack(const backend::WeightReader& reader) override;
  void load(std::shared_ptr<const backend::Program> program,
            std::span<const backend::KvSlab> slabs) override;
  void copy_blocks(std::span<const backend::BlockCopy> copies) override;
  void launch(const backend::StepMeta& meta) override;
  void wait() override {}
  const float* logits() const override;
  int64_t logits_stride() const override { return program_->vocab_size; }
  void parallel(const std::function<void(int, int)>& fn) override { fn(0, 1); }
  int num_workers() const override { return 1; }

 private:
  struct KvLayer {
    std::vector<float> k;  // [slot][kv_heads * head_dim]
    std::vector<float> v;
  };

  int64_t num_rows(int32_t tensor) const;
  int64_t cols(int32_t tensor) const;
  std::vector<float>& values(int32_t tensor) { return tensors_[static_cast<size_t>(tensor)]; }
  const std::vector<float>& vector_of(const backend::Op& op) const;
  KvLayer& kv_of(const backend::Op& op);

  void run(const backend::Op& op);
  void embed(const backend::Op& op);
  void rms_norm(const backend::Op& op);
  void prepare(const backend::Op& op);
  void matmul(const backend::Op& op);
  void rope(const backend::Op& op);
  void store_kv(const backend::Op& op);
  void attention(const backend::Op& op);
  void attend(const backend::Op& op, int64_t row, int64_t token, int64_t head);
  void elementwise(const backend::Op& op);
  void gather_rows(const backend::Op& op);

  std::shared_ptr<const backend::Program> program_;
  std::map<const backend::PackedWeight*, std::vector<float>> weights_;  // [out][in]
  std::vector<std::vector<float>> tensors_;
  std::vector<std::vector<KvLayer>> kv_;  // by group, layer
  const backend::StepMeta* meta_ = nullptr;
};

}  // namespace quire::golden
