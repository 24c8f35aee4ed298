// numbers_key: the name of everything that the numbers in a KV block depend on beside the tokens.
#pragma once

#include <string>

#include "quire/checkpoint/checkpoint.h"
#include "quire/llm/options.h"
#include "quire/llm/plan_model.h"

namespace quire::llm {

/// Readable text; equal for two processes only if they compute the same K and V for the same
/// tokens: XXH3-128 over every byte of the checkpoint's weight and configuration files (rotary
/// scaling and all else the model says is in there), dtypes, KV layout and block size, instruction
/// set, and what the program was built from (version, kernels, compiler, mathematics library).
/// Reads the files; throws LoadError when one cannot be read.
std::string numbers_key(const Options& options, const checkpoint::Checkpoint& checkpoint,
                        const ModelPlan& plan);

}  // namespace quire::llm
