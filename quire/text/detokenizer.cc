#include "quire/text/detokenizer.h"

#include "quire/text/tokenizer/unicode.h"

namespace quire::text {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";  // U+FFFD

/// Moves what is whole or hopeless from the front of `bytes` to `out`; an unfinished code point at
/// the end stays.
void take_whole(std::string_view& bytes, std::string& out) {
  while (!bytes.empty()) {
    const Utf8Unit unit = utf8_unit(bytes);
    if (unit.state == Utf8Unit::State::kTruncated) return;
    out += unit.state == Utf8Unit::State::kWhole ? bytes.substr(0, unit.length) : kReplacement;
    bytes.remove_prefix(unit.length);
  }
}

}  // namespace

IncrementalDetokenizer::IncrementalDetokenizer(const Tokenizer& tokenizer, bool skip_special_tokens)
    : tokenizer_(&tokenizer), skip_special_tokens_(skip_special_tokens) {}

std::string IncrementalDetokenizer::push(int32_t id) {
  if (skip_special_tokens_ && tokenizer_->is_special(id)) return {};
  pending_ += tokenizer_->token_bytes(id);
  std::string out;
  std::string_view rest = pending_;
  take_whole(rest, out);
  pending_.erase(0, pending_.size() - rest.size());
  return out;
}

std::string IncrementalDetokenizer::flush() {
  std::string out = replace_invalid_utf8(pending_);
  pending_.clear();
  return out;
}

std::string replace_invalid_utf8(std::string_view bytes) {
  std::string out;
  out.reserve(bytes.size());
  take_whole(bytes, out);
  if (!bytes.empty()) out += kReplacement;
  return out;
}

}  // namespace quire::text
