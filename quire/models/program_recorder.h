// record_program, record_stage: a model, or a pipeline stage of it, as one Program.
#pragma once

#include "quire/backend/program_builder.h"
#include "quire/models/model.h"

namespace quire::models {

/// Records embedding, every layer and the head. `options.cache_groups` comes from
/// model.cache_groups().
backend::Program record_program(const Model& model, backend::ProgramBuilder::Options options);

/// The layers [first, first + count) of a model: a pipeline stage. The first stage begins with the
/// embedding, the last ends with the head; `hidden` is the width of what stages hand on.
struct Stage {
  int64_t first = 0;
  int64_t count = 0;
  int64_t hidden = 0;
};
backend::Program record_stage(const Model& model, const Stage& stage,
                              backend::ProgramBuilder::Options options);

}  // namespace quire::models
