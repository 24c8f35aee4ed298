// sampling_options: the sampling options of `run` and `chat`, by the API's names.
#pragma once

#include <CLI/CLI.hpp>

#include "quire/llm/sampling_params.h"

namespace quire::apps {

/// `params` must live as long as the parser.
void add_sampling_options(CLI::App& command, llm::SamplingParams& params);

}  // namespace quire::apps
