// Plans of public models on a device of round numbers, for tests.
#pragma once

#include <cstdint>
#include <string_view>
#include <utility>

#include "quire/base/error.h"
#include "quire/plan/known_models.h"
#include "quire/plan/plan.h"

namespace quire::plan::testing {

/// 1 Top/s of fp32, 2 of bf16, 4 of int8; 100 GB/s of 64 GiB; 4 workers.
inline Device round_device() {
  Device device;
  device.name = "round";
  device.memory_bytes = int64_t{64} << 30;
  device.workers = 4;
  device.peak_fp32 = 1e12;
  device.peak_bf16 = 2e12;
  device.peak_int8 = 4e12;
  device.levels = {{.name = "memory", .bytes = 0, .bytes_per_second = 100e9}};
  device.sources = {"made up"};
  return device;
}

/// All that is left of the memory; refuses what does not hold the wanted length.
inline PoolSize all_that_is_left(const PoolDemand& demand) {
  const int64_t blocks = (demand.memory_bytes - demand.fixed_bytes) / demand.block_bytes;
  const int64_t tokens = blocks * demand.block_tokens;
  if (tokens >= demand.length) return {.num_blocks = blocks, .max_model_len = demand.length};
  if (!demand.may_shorten || tokens <= 0) throw LoadError("memory", "too little");
  return {.num_blocks = blocks, .max_model_len = tokens};
}

inline PlanOptions options_on(const Device& device, std::string_view format) {
  PlanOptions options;
  options.device = device;
  options.memory_bytes = device.memory_bytes;
  options.record.format = &find_weight_format(format);
  options.size_pool = all_that_is_left;
  return options;
}

inline Plan plan_on(const Device& device, std::string_view model, std::string_view format,
                    int32_t tensor_parallel = 1, int32_t pipeline_parallel = 1) {
  PlanOptions options = options_on(device, format);
  options.record.tensor_parallel = tensor_parallel;
  options.record.pipeline_parallel = pipeline_parallel;
  auto known = find_known_model(model);
  if (!known) throw LoadError(model, "no such model");
  return make_plan(std::move(*known), std::move(options));
}

}  // namespace quire::plan::testing
