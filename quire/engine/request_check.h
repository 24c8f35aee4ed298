// request_check: what is wrong with a request, found before it is queued.
#pragma once

#include <optional>

#include "quire/base/result.h"
#include "quire/engine/engine.h"

namespace quire::engine {

/// Checks ids against the logits' width, lengths and counts against the limits, numbers against
/// their ranges. The error's param names the field at fault.
std::optional<Error> check_request(const EngineRequest& request, const Engine::Options& options,
                                   bool has_tokenizer);

/// Puts a checked request in the form scheduler and sampler want: the model's stops joined to its
/// own unless ignore_eos, id lists sorted and distinct.
void normalize_request(EngineRequest& request, const Engine::Options& options);

}  // namespace quire::engine
