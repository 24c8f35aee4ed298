#include "quire/backend/dryrun/program_memory.h"

#include <algorithm>

#include <fmt/format.h>

namespace quire::backend::dryrun {

std::string layout_text(const WeightSpec& spec) {
  std::string suffix = spec.super_group == 0 ? "" : fmt::format(" in {}", spec.super_group);
  if (spec.offset == Offset::kMin) suffix += " with minimum";
  if (spec.offset == Offset::kZeros) suffix += " with zeros";
  switch (spec.layout) {
    case Layout::kDense:
      if (spec.dtype == DType::kF16) return "dense fp16";
      return spec.dtype == DType::kBF16 ? "dense bf16" : "dense fp32";
    case Layout::kInt8Group:
      return fmt::format("int8 group {}{}", spec.group, suffix);
    case Layout::kInt4Group:
      return fmt::format("int4 group {}{}", spec.group, suffix);
  }
  return "?";
}

int64_t ProgramMemory::weight_bytes() const {
  int64_t sum = 0;
  for (const WeightClass& c : weights) sum += c.bytes;
  return sum;
}

int64_t ProgramMemory::parameters() const {
  int64_t sum = 0;
  for (const WeightClass& c : weights) sum += c.parameters;
  return sum;
}

ProgramMemory count_memory(const Program& program) {
  ProgramMemory memory;
  for (const auto& weight : program.weights) {
    const std::string layout = layout_text(weight->spec);
    auto found = std::find_if(memory.weights.begin(), memory.weights.end(),
                              [&](const WeightClass& c) { return c.layout == layout; });
    if (found == memory.weights.end()) {
      memory.weights.push_back({.layout = layout});
      found = memory.weights.end() - 1;
    }
    ++found->count;
    found->parameters += weight->spec.in * weight->spec.out;
    found->bytes += weight->bytes();
  }
  for (const auto& vector : program.vectors) {
    memory.vector_bytes += static_cast<int64_t>(vector.size() * sizeof(float));
  }
  memory.arena_bytes = program.arena_bytes;
  for (const CacheGroupSpec& group : program.cache_groups) {
    memory.kv.push_back({.block_bytes = group.block_bytes(),
                         .token_bytes = group.block_bytes() / group.block_tokens,
                         .block_tokens = group.block_tokens});
  }
  return memory;
}

}  // namespace quire::backend::dryrun
