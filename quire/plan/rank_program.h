// RankProgram: the program one rank of a model would run, recorded without its weights.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "quire/backend/program.h"
#include "quire/plan/device.h"
#include "quire/plan/planned_model.h"
#include "quire/plan/weight_format.h"

namespace quire::plan {

/// What decides a program beside the model.
struct RecordOptions {
  std::string dtype = "auto";             // as --dtype
  std::string activation_dtype = "auto";  // as --activation-dtype
  std::string kv_cache_dtype = "auto";    // as --kv-cache-dtype
  const WeightFormat* format = nullptr;   // null: as the files (or the config's dtype) say
  int32_t block_tokens = 16;
  int64_t max_tokens = 2048;  // T's bound
  int64_t max_logits = 128;   // R's bound
  int32_t tensor_parallel = 1;
  int32_t pipeline_parallel = 1;
  Device::Kind kind = Device::Kind::kCpu;
};

/// Which part of the model a rank holds. Ends are exclusive. Ranks of a stage count on through the
/// tensor-parallel ones first: rank = stage * tensor_parallel + tp_rank.
struct RankShare {
  int32_t rank = 0;
  int32_t tp_rank = 0;
  int32_t stage = 0;
  int64_t first_layer = 0, end_layer = 0;
  int64_t first_head = 0, end_head = 0;
  int64_t first_kv_head = 0, end_kv_head = 0;
  int64_t kv_replicas = 1;  // ranks of the stage that hold the same KV heads
  bool has_embedding = false;
  bool has_head = false;
};

/// One pipeline stage; its tensor-parallel ranks run the same program on other numbers.
struct StageProgram {
  backend::Program program;
  std::vector<backend::CacheGroupSpec> cache_groups;
  std::vector<RankShare> ranks;
};

/// The types that `options` come to with this model.
DType planned_kv_dtype(const PlannedModel& model, const RecordOptions& options);
/// As --kv-cache-dtype has it: "bfloat16".
std::string_view kv_dtype_name(DType dtype);

/// Checks the degrees (LoadErrors name the option and what would do), then records every stage.
/// Layers go to stages in order, the first ones taking one more where they do not divide.
std::vector<StageProgram> record_stages(const PlannedModel& model, const RecordOptions& options);

/// Numbers of the matrices and vectors a checkpoint of this model holds; a tied head counts once.
/// Taken from the program of one rank.
int64_t count_parameters(const PlannedModel& model);

}  // namespace quire::plan
