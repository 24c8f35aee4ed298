// Feeds arbitrary bytes to the tokenizer.json reader and uses the tokenizers that come of it.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "quire/base/error.h"
#include "quire/checkpoint/tokenizer_json.h"
#include "quire/text/detokenizer.h"
#include "quire/text/tokenizer.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  try {
    quire::checkpoint::HfTokenizerFiles files;
    files.spec = quire::checkpoint::parse_tokenizer_json(input, "tokenizer.json");
    const quire::text::Tokenizer tokenizer(files.spec);
    const std::string_view text = input.substr(0, 256);
    for (const bool special : {false, true}) {
      quire::text::IncrementalDetokenizer stream(tokenizer, special);
      for (const int32_t id : tokenizer.encode(text, special, special)) stream.push(id);
      stream.flush();
    }
  } catch (const quire::LoadError&) {
    // The one way in which a file is refused.
  }
  try {
    quire::checkpoint::HfTokenizerFiles files;
    quire::checkpoint::apply_tokenizer_config(input, "tokenizer_config.json", files);
  } catch (const quire::LoadError&) {
    // As above.
  }
  return 0;
}
