// PreTokenizerChain: cuts a text into the pieces that the model's merges may not cross.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "quire/text/tokenizer/pattern_scanner.h"
#include "quire/text/tokenizer/split_regex.h"
#include "quire/text/tokenizer_spec.h"

namespace quire::text {

/// Pieces of a text, in order; where nothing was removed they join to the whole.
struct Pieces {
  std::string_view text;
  std::vector<Piece> pieces;

  // Working memory, kept from one run to the next.
  std::string storage;
  std::vector<Piece> input;
  std::vector<Piece> matches;
};

/// Immutable; may be used from several threads at once, each with its own Pieces.
class PreTokenizerChain {
 public:
  /// Throws LoadError when a pattern does not compile or ByteLevel is not the last step.
  explicit PreTokenizerChain(std::span<const PreTokenizer> steps);

  /// Cuts `text`, which must outlive `result`'s use, unlike what `result` held before.
  void run(std::string_view text, Pieces& result) const;

 private:
  enum class Finder : uint8_t { kScanner, kRegex, kNumeric, kPrefixSpace };
  struct Step {
    Finder finder = Finder::kScanner;
    PreTokenizer::Behavior behavior = PreTokenizer::Behavior::kIsolated;
    bool invert = false;
    MatchEnd scanner = nullptr;
    std::vector<SplitRegex> regex;  // one, for kRegex
  };

  static Step split_step(const PreTokenizer& spec, const std::string& pattern);
  static void prefix_spaces(Pieces& result);
  static void scan(const Step& step, Pieces& result);
  static void split(const Step& step, Pieces& result);

  std::vector<Step> steps_;
};

/// Cuts `whole` at `matches` (ordered, inside it) as HF's behaviors say and appends the pieces that
/// are not empty. With `invert`, what lies between the matches counts as the match.
void cut(Piece whole, std::span<const Piece> matches, PreTokenizer::Behavior behavior, bool invert,
         std::vector<Piece>& pieces);

}  // namespace quire::text
