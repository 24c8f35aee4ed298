#include "quire/models/program_recorder.h"

#include <utility>

namespace quire::models {

backend::Program record_program(const Model& model, backend::ProgramBuilder::Options options) {
  backend::ProgramBuilder p(std::move(options));
  backend::Tensor x = model.embed(p);
  for (int64_t i = 0; i < model.num_layers(); ++i) x = model.layer(i).record(p, x);
  return p.finish(model.head(p, x));
}

backend::Program record_stage(const Model& model, const Stage& stage,
                              backend::ProgramBuilder::Options options) {
  backend::ProgramBuilder p(std::move(options));
  backend::Tensor x = stage.first == 0 ? model.embed(p) : p.input(stage.hidden);
  const int64_t end = stage.first + stage.count;
  for (int64_t i = stage.first; i < end; ++i) x = model.layer(i).record(p, x);
  return end == model.num_layers() ? p.finish(model.head(p, x)) : p.finish_stage(x);
}

}  // namespace quire::models
