// ModelTable: well-known models in several weight formats, side by side.
#pragma once

#include <string>

namespace quire::plan {

/// Llama-3.1-8B, 70B and 405B, Mistral-7B and Qwen2-72B in FP16, INT8, NF4 and GPTQ-4 as a
/// Markdown table: weights by the textbook and counted, KV cache, activations, and how many H100
/// they need.
std::string model_table();

}  // namespace quire::plan
