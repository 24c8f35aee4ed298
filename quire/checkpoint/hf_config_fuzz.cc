// Fuzzes the readers of config.json, generation_config.json and the index of shards.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "quire/base/error.h"
#include "quire/checkpoint/hf_config.h"
#include "quire/checkpoint/safetensors_source.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  namespace cp = quire::checkpoint;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  try {
    cp::parse_safetensors_index(text, "fuzz");
  } catch (const quire::LoadError&) {
  }
  try {
    const cp::JsonConfig json(text, "fuzz");
    cp::ModelConfig config = cp::hf_model_config(json);
    cp::hf_generation_defaults(json, config);
  } catch (const quire::LoadError&) {
  }
  return 0;
}
