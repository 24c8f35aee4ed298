// WeightScope: a place in a checkpoint's tree of names from which a module takes its weights.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "quire/backend/backend.h"
#include "quire/checkpoint/tensor_source.h"
#include "quire/weights/load_options.h"
#include "quire/weights/row_order.h"

namespace quire::weights {

/// Cheap to copy; all scopes of one load share the count of what was read. The tensor source and
/// the backend must outlive every scope. Missing tensors and wrong shapes are LoadErrors that name
/// the tensor.
class WeightScope {
 public:
  /// The root. `progress` is called after each weight with bytes of the checkpoint done and in all.
  WeightScope(const checkpoint::TensorSource& tensors, backend::Backend& backend,
              const LoadOptions& options, backend::Progress progress = {});

  /// scope.child("layers").child("3") is "layers.3" below this scope.
  WeightScope child(std::string_view name) const;
  /// The whole name: "model.layers.3.self_attn.q_proj"; empty at the root.
  const std::string& path() const { return path_; }
  /// Its last part: "q_proj".
  std::string_view name() const;

  /// True when the checkpoint holds `name` below this scope.
  bool has(std::string_view name) const;
  /// "<path>.weight", a matrix [out, in], packed by the backend; its mapped pages are released.
  std::shared_ptr<const backend::PackedWeight> weight(int64_t out, int64_t in,
                                                      RowOrder order = {}) const;
  /// "<path>.<name>", `size` numbers, as fp32.
  std::vector<float> vector(std::string_view name, int64_t size, RowOrder order = {}) const;
  /// The same, or empty when the checkpoint has none.
  std::vector<float> optional_vector(std::string_view name, int64_t size,
                                     RowOrder order = {}) const;
  /// Counts "<path>.<name>" as used without reading it.
  void skip(std::string_view name) const;

  /// How rows of a q or k projection with heads of `head_dim` are stored in this checkpoint.
  RowOrder rope_rows(int64_t head_dim) const;
  /// How activations meet a weight under the load's options.
  backend::ActType activation(const backend::WeightSpec& spec) const;

  /// Names of tensors nothing asked for, sorted: a sign of a wrong architecture. Precomputed rotary
  /// frequencies that old checkpoints carry are not counted.
  std::vector<std::string> unread() const;

 private:
  struct Load;
  const checkpoint::StoredTensor& find(std::string_view name, std::span<const int64_t> shape) const;
  std::string full_name(std::string_view name) const;

  std::shared_ptr<Load> load_;
  std::string path_;
};

}  // namespace quire::weights
