#include "quire/plan/weight_format.h"

#include <algorithm>
#include <array>
#include <cctype>

#include <fmt/format.h>

#include "quire/base/error.h"

namespace quire::plan {
namespace {

using backend::Layout;
using backend::Offset;

constexpr std::array<WeightFormat, 13> kFormats = {{
    {.name = "fp32",
     .aliases = "float32 float",
     .stored = DType::kF32,
     .everywhere = true,
     .textbook_bits = 32,
     .about = "every number 4 bytes"},
    {.name = "bf16",
     .aliases = "bfloat16",
     .stored = DType::kBF16,
     .everywhere = true,
     .textbook_bits = 16,
     .about = "every number 2 bytes"},
    {.name = "fp16",
     .aliases = "half float16",
     .stored = DType::kF16,
     .everywhere = true,
     .textbook_bits = 16,
     .about = "every number 2 bytes"},
    {.name = "q8_0",
     .aliases = "",
     .stored = DType::kQ8_0,
     .everywhere = true,
     .textbook_bits = 8,
     .about = "8 bits and an fp16 scale for every 32"},
    {.name = "int8",
     .aliases = "w8a16 bitsandbytes-8",
     .recoded = true,
     .layout = Layout::kInt8Group,
     .textbook_bits = 8,
     .about = "8 bits and an fp16 scale for every output; embedding and head 16 bits"},
    {.name = "q6_k",
     .aliases = "",
     .stored = DType::kQ6_K,
     .everywhere = true,
     .textbook_bits = 6,
     .about = "6 bits, 8-bit scales for every 16 under an fp16 one for every 256"},
    {.name = "q5_k",
     .aliases = "q5_k_m",
     .stored = DType::kQ5_K,
     .everywhere = true,
     .textbook_bits = 5,
     .about = "5 bits, scales and minima for every 32 under fp16 ones for every 256"},
    {.name = "q4_k",
     .aliases = "q4_k_m",
     .stored = DType::kQ4_K,
     .everywhere = true,
     .textbook_bits = 4,
     .about = "4 bits, scales and minima for every 32 under fp16 ones for every 256"},
    {.name = "q4_1",
     .aliases = "",
     .stored = DType::kQ4_1,
     .everywhere = true,
     .textbook_bits = 4,
     .about = "4 bits, an fp16 scale and minimum for every 32"},
    {.name = "q4_0",
     .aliases = "",
     .stored = DType::kQ4_0,
     .everywhere = true,
     .textbook_bits = 4,
     .about = "4 bits and an fp16 scale for every 32"},
    {.name = "nf4",
     .aliases = "bitsandbytes bnb-4",
     .recoded = true,
     .layout = Layout::kInt4Group,
     .group = 64,
     .offset = Offset::kConstant,
     .textbook_bits = 4,
     .about = "a 4-bit code and a 16-bit scale for every 64; embedding and head 16 bits"},
    {.name = "gptq-4",
     .aliases = "gptq gptq-int4",
     .recoded = true,
     .layout = Layout::kInt4Group,
     .group = 128,
     .offset = Offset::kZeros,
     .textbook_bits = 4,
     .about = "4 bits, an fp16 scale and a zero for every 128; embedding and head 16 bits"},
    {.name = "awq-4",
     .aliases = "awq",
     .recoded = true,
     .layout = Layout::kInt4Group,
     .group = 128,
     .offset = Offset::kZeros,
     .textbook_bits = 4,
     .about = "4 bits, an fp16 scale and a zero for every 128; embedding and head 16 bits"},
}};

std::string lower(std::string_view text) {
  std::string result(text);
  std::transform(result.begin(), result.end(), result.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return result;
}

bool is_word_of(std::string_view words, std::string_view word) {
  return fmt::format(" {} ", words).find(fmt::format(" {} ", word)) != std::string::npos;
}

}  // namespace

std::span<const WeightFormat> weight_formats() {
  return kFormats;
}

const WeightFormat& find_weight_format(std::string_view name) {
  const std::string wanted = lower(name);
  std::string known;
  for (const WeightFormat& format : kFormats) {
    if (wanted == format.name || is_word_of(format.aliases, wanted)) return format;
    known += fmt::format("{}{}", known.empty() ? "" : ", ", format.name);
  }
  throw LoadError("--quantization", "", "one of " + known, name);
}

bool is_embedding_or_head(std::string_view tensor_name) {
  return tensor_name.find("embed_tokens") != std::string_view::npos ||
         tensor_name.find("lm_head") != std::string_view::npos;
}

backend::WeightSpec recoded_spec(const WeightFormat& format, const backend::WeightSpec& spec) {
  if (!format.recoded || is_embedding_or_head(spec.name)) return spec;
  backend::WeightSpec held = spec;
  held.layout = format.layout;
  held.group = format.group == 0 ? spec.in : format.group;
  held.offset = format.offset;
  held.zero = format.offset == Offset::kConstant ? 8 : 0;
  if (spec.in % held.group != 0 || held.group % 8 != 0) {
    throw LoadError(spec.name, fmt::format("inputs, for {}", format.name),
                    fmt::format("a multiple of the group, {}", held.group),
                    fmt::format("{}", spec.in));
  }
  return held;
}

}  // namespace quire::plan
