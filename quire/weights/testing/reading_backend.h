// ReadingBackend: a Backend for tests of loading: reads every row of a weight and packs nothing.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "quire/backend/backend.h"

namespace quire::weights::testing {

class ReadingBackend final : public backend::Backend {
 public:
  /// The rows of the last dense weight.
  const std::vector<float>& values() const { return values_; }

  std::string_view name() const override { return "reading"; }
  std::string unsupported(const backend::Program& /*program*/,
                          const backend::Op& /*op*/) const override {
    return {};
  }
  backend::ActType preferred_activation(const backend::WeightSpec& /*spec*/) const override {
    return backend::ActType::kBF16;
  }
  std::shared_ptr<const backend::PackedWeight> pack(const backend::WeightReader& reader) override {
    backend::WeightRows rows;
    reader.read(0, reader.spec().out, rows);
    reader.done();
    values_ = rows.values;
    auto weight = std::make_shared<backend::PackedWeight>();
    weight->spec = reader.spec();
    return weight;
  }
  void load(std::shared_ptr<const backend::Program> /*program*/,
            std::span<const backend::KvSlab> /*slabs*/) override {}
  void copy_blocks(std::span<const backend::BlockCopy> /*copies*/) override {}
  void launch(const backend::StepMeta& /*meta*/) override {}
  void wait() override {}
  const float* logits() const override { return nullptr; }
  int64_t logits_stride() const override { return 0; }
  void parallel(const std::function<void(int, int)>& fn) override { fn(0, 1); }
  int num_workers() const override { return 1; }

 private:
  std::vector<float> values_;
};

}  // namespace quire::weights::testing
