// ProgramBuilder: records a model's operations into a Program, then gives its tensors storage by
// liveness.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "quire/backend/program.h"

namespace quire::backend {

/// A tensor of the program being recorded. Cheap to copy.
struct Tensor {
  int32_t index = -1;
  Rows rows = Rows::kTokens;
  int64_t cols = 0;
};

/// Records operations. A model's record() functions call these in the order of the paper's figure;
/// nothing is computed.
class ProgramBuilder {
 public:
  struct Options {
    int64_t max_tokens = 2048;  // T's bound: --max-num-batched-tokens
    int64_t max_logits = 64;    // R's bound: max(64, max_num_seqs)
    std::vector<CacheGroupSpec> cache_groups;
  };
  explicit ProgramBuilder(Options options);

  /// Names nest: operations recorded while a Scope lives are called "outer.inner.op".
  class Scope {
   public:
    Scope(ProgramBuilder& builder, std::string_view name);
    ~Scope();
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    ProgramBuilder& builder_;
    size_t length_;
  };

  /// A tensor [T, cols] that is filled before the program runs: a later pipeline stage's input.
  Tensor input(int64_t cols);
  Tensor embed(const std::shared_ptr<const PackedWeight>& table);
  Tensor rms_norm(Tensor x, const std::vector<float>& weight, float epsilon);
  /// y = W x (+ bias). `act` says how x meets W; preparing x is recorded once per x and form. An
  /// empty bias is none.
  Tensor matmul(Tensor x, const std::shared_ptr<const PackedWeight>& weight,
                const std::vector<float>& bias, ActType act, std::string_view name);
  /// Rotates x [T, num_heads * head_dim] in place by half-split rotary embedding: element i < d/2
  /// pairs with i + d/2, angle = position * inverse_frequencies[i]. Returns x.
  Tensor rope(Tensor x, const std::vector<float>& inverse_frequencies, int32_t num_heads,
              int32_t head_dim);
  void store_kv(Tensor k, Tensor v, const AttentionShape& shape, int32_t cache_group,
                int32_t layer);
  Tensor attention(Tensor q, const AttentionShape& shape, int32_t cache_group, int32_t layer);
  Tensor gated_act(Tensor gate, Tensor up);
  Tensor add(Tensor a, Tensor b);
  /// Keeps only the rows that need logits: [T, n] -> [R, n].
  Tensor gather_logits_rows(Tensor x);

  /// Ends the recording: `logits` [R, vocab] is the result. Assigns arena offsets. The builder is
  /// spent.
  Program finish(Tensor logits);
  /// Ends the recording of a pipeline stage that is not the last: `hidden` [T, hidden] goes to the
  /// next one. Such a program has no logits.
  Program finish_stage(Tensor hidden);

 private:
  Tensor new_tensor(Rows rows, TensorForm form, int64_t cols, int64_t group, std::string_view name);
  Tensor prepared(Tensor x, TensorForm form, int64_t group);
  Op& push(OpKind kind, std::string_view name);
  int32_t weight_index(const std::shared_ptr<const PackedWeight>& weight);
  int32_t vector_index(const std::vector<float>& vector);
  void assign_storage(int32_t result);

  Program program_;
  std::string prefix_;
  std::map<std::tuple<int32_t, TensorForm, int64_t>, Tensor> prepared_;
};

}  // namespace quire::backend
