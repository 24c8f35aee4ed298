#include "quire/checkpoint/tokenizer_gguf.h"

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

#include "quire/base/error.h"
#include "quire/text/tokenizer/pattern_scanner.h"

namespace quire::checkpoint {
namespace {

using text::PreTokenizer;

// Values of tokenizer.ggml.token_type.
constexpr int32_t kControl = 3;
constexpr int32_t kUserDefined = 4;

constexpr std::string_view kKeys = "tokenizer.ggml.";

// Mistral's Tekken, and the three steps of DeepSeek V3, as in their tokenizer.json.
constexpr std::string_view kTekkenPattern =
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+|)"
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*|\p{N}|)"
    R"( ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view kDeepSeekDigits = R"(\p{N}{1,3})";
constexpr std::string_view kDeepSeekKanaHan = "[\u4e00-\u9fa5\u3040-\u309f\u30a0-\u30ff]+";
constexpr std::string_view kDeepSeekWords =
    R"([!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+|)"
    R"( ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

enum class Rules : uint8_t { kGpt2, kDigitsGpt2, kLlama3, kQwen2, kTekken, kDeepSeek3 };

struct PreName {
  std::string_view name;
  Rules rules;
};

constexpr auto kPreNames = std::to_array<PreName>({
    {"gpt-2", Rules::kGpt2},
    {"gpt2", Rules::kGpt2},
    {"phi-2", Rules::kGpt2},
    {"mpt", Rules::kGpt2},
    {"olmo", Rules::kGpt2},
    {"smollm", Rules::kDigitsGpt2},
    {"starcoder", Rules::kDigitsGpt2},
    {"refact", Rules::kDigitsGpt2},
    {"command-r", Rules::kDigitsGpt2},
    {"codeshell", Rules::kDigitsGpt2},
    {"llama-bpe", Rules::kLlama3},
    {"llama3", Rules::kLlama3},
    {"llama-v3", Rules::kLlama3},
    {"qwen2", Rules::kQwen2},
    {"deepseek-r1-qwen", Rules::kQwen2},
    {"tekken", Rules::kTekken},
    {"deepseek-v3", Rules::kDeepSeek3},
});

std::string key(std::string_view name) {
  return std::string(kKeys) + std::string(name);
}

Rules find_rules(std::string_view pre, std::string_view path) {
  std::string known;
  for (const PreName& entry : kPreNames) {
    if (entry.name == pre) return entry.rules;
    known += (known.empty() ? "one of " : ", ") + std::string(entry.name);
  }
  throw LoadError(path, key("pre"), known, pre.empty() ? "none" : pre);
}

PreTokenizer split(std::string_view pattern) {
  PreTokenizer step;
  step.kind = PreTokenizer::Kind::kSplitRegex;
  step.pattern = pattern;
  return step;
}

PreTokenizer byte_level(bool use_regex) {
  PreTokenizer step;
  step.use_regex = use_regex;
  return step;
}

void apply_rules(Rules rules, text::TokenizerSpec& spec) {
  auto& steps = spec.pre_tokenizers;
  switch (rules) {
    case Rules::kGpt2:
      steps = {byte_level(true)};
      break;
    case Rules::kDigitsGpt2:
      steps = {PreTokenizer{}, byte_level(true)};
      steps[0].kind = PreTokenizer::Kind::kDigits;
      steps[0].individual_digits = true;
      break;
    case Rules::kLlama3:
      steps = {split(text::kLlama3Pattern), byte_level(false)};
      spec.ignore_merges = true;
      break;
    case Rules::kQwen2:
      steps = {split(text::kQwen2Pattern), byte_level(false)};
      spec.normalizers = {text::Normalizer::kNfc};
      break;
    case Rules::kTekken:
      steps = {split(kTekkenPattern), byte_level(false)};
      spec.ignore_merges = true;
      break;
    case Rules::kDeepSeek3:
      steps = {split(kDeepSeekDigits), split(kDeepSeekKanaHan), split(kDeepSeekWords),
               byte_level(false)};
      break;
  }
}

/// Splits "left right". Byte-level tokens hold no space, so that there is one.
std::pair<std::string, std::string> parse_merge(const std::string& merge, size_t rank,
                                                std::string_view path) {
  const size_t space = merge.find(' ', 1);
  if (merge.empty() || space == std::string::npos || space + 1 == merge.size()) {
    throw LoadError(path, key("merges") + "[" + std::to_string(rank) + "]", "two tokens",
                    "\"" + merge + "\"");
  }
  return {merge.substr(0, space), merge.substr(space + 1)};
}

std::optional<int32_t> checked_id(std::optional<int64_t> id, std::string_view name, size_t size,
                                  std::string_view path) {
  if (!id) return std::nullopt;
  if (*id < 0 || static_cast<uint64_t>(*id) >= size) {
    throw LoadError(path, key(name), "an id below " + std::to_string(size), std::to_string(*id));
  }
  return static_cast<int32_t>(*id);
}

void add_tokens(const GgufTokenizerFields& fields, std::string_view path,
                text::TokenizerSpec& spec) {
  if (fields.tokens.empty() || fields.tokens.size() > std::numeric_limits<int32_t>::max() / 4) {
    throw LoadError(path, key("tokens"), "a vocabulary",
                    std::to_string(fields.tokens.size()) + " tokens");
  }
  if (!fields.token_types.empty() && fields.token_types.size() != fields.tokens.size()) {
    throw LoadError(path, key("token_type"), std::to_string(fields.tokens.size()) + " values",
                    std::to_string(fields.token_types.size()));
  }
  spec.vocab = fields.tokens;
  for (size_t id = 0; id < fields.token_types.size(); ++id) {
    const int32_t type = fields.token_types[id];
    if ((type != kControl && type != kUserDefined) || fields.tokens[id].empty()) continue;
    text::AddedToken& token = spec.added_tokens.emplace_back();
    token.id = static_cast<int32_t>(id);
    token.content = fields.tokens[id];
    token.special = type == kControl;
  }
}

void add_named_ids(const GgufTokenizerFields& fields, std::string_view path,
                   text::TokenizerSpec& spec) {
  const size_t size = fields.tokens.size();
  const auto name_of = [&](const std::optional<int32_t>& id) {
    return id ? fields.tokens[static_cast<size_t>(*id)] : std::string();
  };
  spec.bos_id = checked_id(fields.bos_id, "bos_token_id", size, path);
  spec.eos_id = checked_id(fields.eos_id, "eos_token_id", size, path);
  spec.unk_id = checked_id(fields.unk_id, "unknown_token_id", size, path);
  spec.pad_id = checked_id(fields.pad_id, "padding_token_id", size, path);
  checked_id(fields.eot_id, "eot_token_id", size, path);
  spec.bos_token = name_of(spec.bos_id);
  spec.eos_token = name_of(spec.eos_id);
  spec.unk_token = name_of(spec.unk_id);
  spec.pad_token = name_of(spec.pad_id);
}

}  // namespace

text::TokenizerSpec tokenizer_spec_from_gguf(const GgufTokenizerFields& fields,
                                             std::string_view path) {
  if (fields.model != "gpt2") {
    throw LoadError(path, key("model"), "gpt2 (byte-level BPE)",
                    fields.model.empty() ? "none" : fields.model);
  }
  const Rules rules = find_rules(fields.pre, path);
  text::TokenizerSpec spec;
  add_tokens(fields, path, spec);
  apply_rules(rules, spec);
  spec.merges.reserve(fields.merges.size());
  for (size_t rank = 0; rank < fields.merges.size(); ++rank) {
    spec.merges.push_back(parse_merge(fields.merges[rank], rank, path));
  }
  add_named_ids(fields, path, spec);
  // Files for Llama 3 may leave the key out and mean yes.
  if (fields.add_bos.value_or(rules == Rules::kLlama3) && spec.bos_id) {
    spec.prefix_ids = {*spec.bos_id};
  }
  if (fields.add_eos.value_or(false) && spec.eos_id) spec.suffix_ids = {*spec.eos_id};
  return spec;
}

}  // namespace quire::checkpoint
