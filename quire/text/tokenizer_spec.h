// TokenizerSpec: everything that turns text into ids and back, read from a checkpoint, independent
// of its file format.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace quire::text {

/// A token matched in the raw text before the model's own rules, with HF's flags.
struct AddedToken {
  int32_t id = 0;
  std::string content;
  bool special =
      false;  // dropped by skip_special_tokens; never produced by user text when specials are off
  bool lstrip = false;
  bool rstrip = false;
  bool single_word = false;
  bool normalized = false;
};

/// One step of pre-tokenization, in order.
struct PreTokenizer {
  enum class Kind : uint8_t { kSplitRegex, kByteLevel, kDigits };
  enum class Behavior : uint8_t {
    kIsolated,
    kRemoved,
    kMergedWithPrevious,
    kMergedWithNext,
    kContiguous
  };
  Kind kind = Kind::kByteLevel;
  std::string pattern;                      // kSplitRegex
  Behavior behavior = Behavior::kIsolated;  // kSplitRegex
  bool invert = false;                      // kSplitRegex
  bool add_prefix_space = false;            // kByteLevel
  bool use_regex = true;                    // kByteLevel: split by GPT-2's pattern
  bool individual_digits = false;           // kDigits
};

enum class Normalizer : uint8_t { kNone, kNfc };

struct TokenizerSpec {
  std::vector<std::string> vocab;  // by id; byte-level (GPT-2) characters; added tokens as they are
  std::vector<std::pair<std::string, std::string>> merges;  // by rank
  std::vector<AddedToken> added_tokens;
  std::vector<Normalizer> normalizers;
  std::vector<PreTokenizer> pre_tokenizers;
  bool ignore_merges = false;  // a piece that is a whole vocabulary entry is one token (Llama 3)
  // The token for bytes that have none; without it they are dropped, as in HF. With the flag a run
  // of such bytes is one token.
  std::optional<int32_t> missing_byte_id;
  bool fuse_missing_bytes = false;
  std::vector<int32_t> prefix_ids;  // put before / after a text when special tokens are added
  std::vector<int32_t> suffix_ids;
  std::optional<int32_t> bos_id;
  std::optional<int32_t> eos_id;
  std::optional<int32_t> unk_id;
  std::optional<int32_t> pad_id;
  std::string bos_token;  // as the chat template sees them
  std::string eos_token;
  std::string unk_token;
  std::string pad_token;
};

}  // namespace quire::text
