// record_program: a whole model on one rank as one Program.
#pragma once

#include "quire/backend/program_builder.h"
#include "quire/models/model.h"

namespace quire::models {

/// Records embedding, every layer and the head. `options.cache_groups` comes from
/// model.cache_groups().
backend::Program record_program(const Model& model, backend::ProgramBuilder::Options options);

}  // namespace quire::models
