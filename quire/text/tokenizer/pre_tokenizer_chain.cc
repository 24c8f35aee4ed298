#include "quire/text/tokenizer/pre_tokenizer_chain.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <utility>

#include "quire/base/error.h"
#include "quire/text/tokenizer/unicode.h"

namespace quire::text {
namespace {

using Behavior = PreTokenizer::Behavior;

/// The pieces under construction: each is a match, a gap or several of them merged.
class Cutter {
 public:
  Cutter(Behavior behavior, bool invert, std::vector<Piece>& pieces)
      : behavior_(behavior), invert_(invert), first_(pieces.size()), pieces_(pieces) {}

  void add(Piece part, bool matched) {
    const bool is_match = matched != invert_;
    if (behavior_ == Behavior::kRemoved) {
      if (!is_match) pieces_.push_back(part);
    } else if (pieces_.size() > first_ && merges(is_match)) {
      pieces_.back().end = part.end;
    } else {
      pieces_.push_back(part);
    }
    previous_ = is_match;
  }

  /// Empty matches take part in the merging, but are no pieces.
  void drop_empty() {
    const auto first = pieces_.begin() + static_cast<ptrdiff_t>(first_);
    pieces_.erase(std::remove_if(first, pieces_.end(),
                                 [](const Piece& piece) { return piece.begin == piece.end; }),
                  pieces_.end());
  }

 private:
  // Which parts join the one before, given what that one was.
  bool merges(bool is_match) const {
    switch (behavior_) {
      case Behavior::kContiguous:
        return is_match == previous_;
      case Behavior::kMergedWithPrevious:
        return is_match && !previous_;
      case Behavior::kMergedWithNext:
        return previous_ && !is_match;
      default:
        return false;
    }
  }

  Behavior behavior_;
  bool invert_;
  size_t first_;
  std::vector<Piece>& pieces_;
  bool previous_ = false;
};

void find_numeric(std::string_view text, Piece whole, std::vector<Piece>& matches) {
  const UnicodeClasses& classes = UnicodeClasses::get();
  for (size_t at = whole.begin; at < whole.end;) {
    const CodePoint point = code_point_at(text.substr(0, whole.end), at);
    if (classes.flags(point.value) & UnicodeClasses::kNumeric) {
      matches.push_back({at, at + point.length});
    }
    at += point.length;
  }
}

}  // namespace

void cut(Piece whole, std::span<const Piece> matches, Behavior behavior, bool invert,
         std::vector<Piece>& pieces) {
  Cutter cutter(behavior, invert, pieces);
  size_t done = whole.begin;
  for (const Piece& match : matches) {
    if (done != match.begin) cutter.add({done, match.begin}, false);
    cutter.add(match, true);
    done = match.end;
  }
  if (done != whole.end) cutter.add({done, whole.end}, false);
  cutter.drop_empty();
}

PreTokenizerChain::PreTokenizerChain(std::span<const PreTokenizer> steps) {
  UnicodeClasses::get();  // made now, not by the first request
  for (size_t i = 0; i < steps.size(); ++i) {
    const PreTokenizer& spec = steps[i];
    const bool last = i + 1 == steps.size();
    if ((spec.kind == PreTokenizer::Kind::kByteLevel) != last) break;
    if (spec.kind == PreTokenizer::Kind::kSplitRegex) {
      steps_.push_back(split_step(spec, spec.pattern));
    } else if (spec.kind == PreTokenizer::Kind::kDigits) {
      Step step;
      step.finder = Finder::kNumeric;
      step.behavior = spec.individual_digits ? Behavior::kIsolated : Behavior::kContiguous;
      steps_.push_back(std::move(step));
    } else {
      if (spec.add_prefix_space) {
        steps_.emplace_back().finder = Finder::kPrefixSpace;
      }
      if (spec.use_regex) steps_.push_back(split_step({}, std::string(kGpt2Pattern)));
      return;
    }
  }
  throw LoadError("tokenizer", "pre_tokenizers", "one ByteLevel, as the last step",
                  "another order");
}

PreTokenizerChain::Step PreTokenizerChain::split_step(const PreTokenizer& spec,
                                                      const std::string& pattern) {
  Step step;
  step.behavior = spec.behavior;
  step.invert = spec.invert;
  step.scanner = find_scanner(pattern);
  if (step.scanner == nullptr) {
    step.finder = Finder::kRegex;
    step.regex.emplace_back(pattern);
  }
  return step;
}

void PreTokenizerChain::run(std::string_view text, Pieces& result) const {
  result.text = text;
  result.pieces.clear();
  if (!text.empty()) result.pieces.push_back({0, text.size()});
  for (const Step& step : steps_) {
    if (step.finder == Finder::kPrefixSpace) {
      prefix_spaces(result);
      continue;
    }
    std::swap(result.input, result.pieces);
    result.pieces.clear();
    if (step.finder == Finder::kScanner && step.behavior == Behavior::kIsolated) {
      scan(step, result);
    } else {
      split(step, result);
    }
  }
}

/// Puts a space before each piece that does not begin with one.
void PreTokenizerChain::prefix_spaces(Pieces& result) {
  std::string text;
  text.reserve(result.text.size() + result.pieces.size());
  for (Piece& piece : result.pieces) {
    const size_t begin = text.size();
    if (result.text[piece.begin] != ' ') text += ' ';
    text += result.text.substr(piece.begin, piece.end - piece.begin);
    piece = {begin, text.size()};
  }
  result.storage = std::move(text);
  result.text = result.storage;
}

void PreTokenizerChain::scan(const Step& step, Pieces& result) {
  for (const Piece& piece : result.input) {
    const std::string_view text = result.text.substr(0, piece.end);
    for (size_t at = piece.begin; at < piece.end;) {
      const size_t end = step.scanner(text, at);
      result.pieces.push_back({at, end});
      at = end;
    }
  }
}

void PreTokenizerChain::split(const Step& step, Pieces& result) {
  std::optional<SplitRegex::Matcher> matcher;
  if (step.finder == Finder::kRegex) matcher.emplace(step.regex.front());
  for (const Piece& piece : result.input) {
    result.matches.clear();
    if (step.finder == Finder::kNumeric) {
      find_numeric(result.text, piece, result.matches);
    } else if (matcher) {
      matcher->find_all(result.text.substr(piece.begin, piece.end - piece.begin), piece.begin,
                        result.matches);
    } else {
      for (size_t at = piece.begin; at < piece.end;) {
        const size_t end = step.scanner(result.text.substr(0, piece.end), at);
        result.matches.push_back({at, end});
        at = end;
      }
    }
    cut(piece, result.matches, step.behavior, step.invert, result.pieces);
  }
}

}  // namespace quire::text
