// Schedule: a program's operations grouped into phases, with a barrier only between phases.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "quire/backend/program.h"

namespace quire::backend::cpu {

/// Consecutive operations [first_op, last_op) that need no barrier between them.
struct Phase {
  enum class Kind : uint8_t {
    kRows,       // a chain whose row r needs only row r of what the chain itself writes: a worker
                 // takes rows and runs the whole chain over them
    kMatmuls,    // independent matmuls over the same rows: their panels are one list of work
    kAttention,  // one attention
  };
  Kind kind = Kind::kRows;
  Rows rows = Rows::kTokens;
  int32_t first_op = 0;
  int32_t last_op = 0;
};

/// Cuts the program where an operation reads or writes arena bytes, or KV, that another worker may
/// still write or read: read after write, write after read and write after write, also through
/// storage that two tensors share one after the other.
std::vector<Phase> make_schedule(const Program& program);

/// What a phase holds: "add + rms_norm + prepare", "3 matmul".
std::string phase_label(const Program& program, const Phase& phase);

}  // namespace quire::backend::cpu
