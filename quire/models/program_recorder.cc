#include "quire/models/program_recorder.h"

#include <utility>

namespace quire::models {

backend::Program record_program(const Model& model, backend::ProgramBuilder::Options options) {
  backend::ProgramBuilder p(std::move(options));
  backend::Tensor x = model.embed(p);
  for (int64_t i = 0; i < model.num_layers(); ++i) x = model.layer(i).record(p, x);
  return p.finish(model.head(p, x));
}

}  // namespace quire::models
