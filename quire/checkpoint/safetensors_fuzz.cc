// Fuzzes the safetensors reader: any bytes end in tensors or a LoadError.
#include <cstddef>
#include <cstdint>
#include <span>

#include "quire/base/error.h"
#include "quire/checkpoint/safetensors_file.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try {
    const quire::checkpoint::SafetensorsFile file(std::as_bytes(std::span(data, size)), "fuzz");
    [[maybe_unused]] volatile std::byte last{};
    for (const auto& tensor : file.tensors()) {
      if (!tensor.bytes.empty()) last = tensor.bytes.back();
    }
  } catch (const quire::LoadError&) {
  }
  return 0;
}
