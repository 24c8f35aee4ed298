// Argv: the spellings users type for options, brought to the one spelling the command-line parser
// knows.
#pragma once

#include <string>
#include <vector>

namespace quire::apps {

/// `--max_model_len`, `--max_model_len=8` and `-tp 2` become `--max-model-len`, `--max-model-len=8`
/// and
/// `--tensor-parallel-size 2`. Values, and everything after `--`, stay as they are.
std::vector<std::string> normalise_argv(const std::vector<std::string>& arguments);

}  // namespace quire::apps
