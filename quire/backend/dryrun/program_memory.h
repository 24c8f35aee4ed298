// ProgramMemory: the bytes a program takes, counted from the program itself.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "quire/backend/program.h"

namespace quire::backend::dryrun {

/// Weights of one compute layout.
struct WeightClass {
  std::string layout;  // "dense fp32", "int4 group 32 with minimum"
  int64_t count = 0;
  int64_t parameters = 0;
  int64_t bytes = 0;
};

/// One cache group's paging.
struct KvClass {
  int64_t block_bytes = 0;  // one block over all layers
  int64_t token_bytes = 0;  // a token's share of it
  int32_t block_tokens = 0;
};

struct ProgramMemory {
  std::vector<WeightClass> weights;  // packed copies, a shared weight once; by first use
  int64_t vector_bytes = 0;          // norms, biases, rotary frequencies
  int64_t arena_bytes = 0;
  std::vector<KvClass> kv;  // by cache group

  int64_t weight_bytes() const;
  /// Of the matrices.
  int64_t parameters() const;
};

ProgramMemory count_memory(const Program& program);

/// "dense bf16", "int8 group 32", ...
std::string layout_text(const WeightSpec& spec);

}  // namespace quire::backend::dryrun
