// Fuzzes the GGUF reader: any bytes end in a checkpoint or a LoadError.
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "quire/base/error.h"
#include "quire/checkpoint/config_limits.h"
#include "quire/checkpoint/gguf_config.h"
#include "quire/checkpoint/gguf_source.h"
#include "quire/checkpoint/tokenizer_gguf.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  namespace cp = quire::checkpoint;
  try {
    const cp::GgufFile file(std::as_bytes(std::span(data, size)), "fuzz");
    const cp::GgufSource source(file, nullptr);
    [[maybe_unused]] volatile std::byte last{};
    for (const std::string& name : source.names()) last = source.find(name)->bytes.back();
    cp::ModelConfig config = cp::gguf_model_config(file);
    cp::settle_tied_head(config, source);
    if (cp::has_gguf_tokenizer(file.metadata())) {
      cp::tokenizer_spec_from_gguf(cp::gguf_tokenizer_fields(file.metadata()), "fuzz");
    }
  } catch (const quire::LoadError&) {
  }
  return 0;
}
