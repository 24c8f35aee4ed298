// tiny_gguf: a model of two small layers with random Q4_0 weights, for tests that run one.
#pragma once

#include <cstdint>
#include <string>

namespace quire::bench::testing {

inline constexpr int32_t kTinyVocab = 96;
inline constexpr int32_t kTinyContext = 512;

/// Writes the model into `folder`, the same each time, and returns the file's path. Hidden 64, 4
/// heads of 16, 2 KV heads; no tokenizer.
std::string write_tiny_gguf(const std::string& folder);

}  // namespace quire::bench::testing
