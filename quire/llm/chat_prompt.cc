#include "quire/llm/chat_prompt.h"

#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

namespace quire::llm {
namespace {

using text::ByteRange;
using text::Value;

// Planes 15 and 16: four bytes in UTF-8, the first of which begins no other character that a
// tokenizer knows.
constexpr uint32_t kFirstPrivate = 0xf0000;
constexpr uint32_t kLastPrivate = 0x10fffd;
constexpr size_t kPrivateBytes = 4;

std::string to_utf8(uint32_t point) {
  return {static_cast<char>(0xf0 | (point >> 18)), static_cast<char>(0x80 | ((point >> 12) & 0x3f)),
          static_cast<char>(0x80 | ((point >> 6) & 0x3f)),
          static_cast<char>(0x80 | (point & 0x3f))};
}

/// The private-use character of planes 15 and 16 that `text` has at `at`, or nothing.
std::optional<uint32_t> private_at(std::string_view text, size_t at) {
  if (text.size() - at < kPrivateBytes) return std::nullopt;
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[at + i]); };
  if (byte(0) != 0xf3 && byte(0) != 0xf4) return std::nullopt;
  uint32_t point = byte(0) & 0x07u;
  for (size_t i = 1; i < kPrivateBytes; ++i) {
    if ((byte(i) & 0xc0u) != 0x80u) return std::nullopt;
    point = (point << 6) | (byte(i) & 0x3fu);
  }
  if (point < kFirstPrivate || point > kLastPrivate) return std::nullopt;
  return point;
}

/// Calls `visit` with every string of a value, keys of dicts included.
template <typename Visit>
void visit_strings(const Value& value, const Visit& visit) {
  if (value.kind() == Value::Kind::kString) visit(value.as_string());
  if (value.kind() == Value::Kind::kList) {
    for (const Value& item : value.as_list()) visit_strings(item, visit);
  }
  if (value.kind() == Value::Kind::kDict) {
    for (const auto& [key, item] : value.as_dict()) {
      visit(key);
      visit_strings(item, visit);
    }
  }
}

/// Stand-ins for the special tokens that one request spells.
class StandIns {
 public:
  StandIns(const text::Tokenizer& tokenizer, const Value::Dict& variables) : tokenizer_(tokenizer) {
    for (const auto& [name, value] : variables) {
      visit_strings(value, [this](const std::string& text) { note(text); });
    }
  }

  bool any_spelled() const { return any_spelled_; }

  /// False when no characters are left.
  bool hide(Value::Dict& variables) {
    for (auto& [name, value] : variables) value = hidden(value);
    return !exhausted_;
  }

  /// Puts the spellings back; `plain` gets their places.
  std::string reveal(std::string_view rendered, std::vector<ByteRange>& plain) const {
    std::string text;
    for (size_t at = 0; at < rendered.size();) {
      const auto point = private_at(rendered, at);
      const auto found = point ? spelling_of_.find(*point) : spelling_of_.end();
      if (found == spelling_of_.end()) {
        text += rendered[at++];
        continue;
      }
      plain.push_back({text.size(), text.size() + found->second.size()});
      text += found->second;
      at += kPrivateBytes;
    }
    return text;
  }

 private:
  void note(std::string_view text) {
    any_spelled_ = any_spelled_ || !tokenizer_.special_spellings(text).empty();
    for (size_t at = 0; at < text.size(); ++at) {
      if (const auto point = private_at(text, at)) taken_.insert(*point);
    }
  }

  Value hidden(const Value& value) {
    if (value.kind() == Value::Kind::kString) return hidden_text(value.as_string());
    if (value.kind() == Value::Kind::kList) {
      Value::List list;
      for (const Value& item : value.as_list()) list.push_back(hidden(item));
      return list;
    }
    if (value.kind() != Value::Kind::kDict) return value;
    Value::Dict dict;
    for (const auto& [key, item] : value.as_dict()) {
      dict.emplace_back(hidden_text(key), hidden(item));
    }
    return dict;
  }

  std::string hidden_text(const std::string& text) {
    std::string shown;
    size_t done = 0;
    for (const ByteRange& range : tokenizer_.special_spellings(text)) {
      shown.append(text, done, range.begin - done);
      shown += stand_in(text.substr(range.begin, range.end - range.begin));
      done = range.end;
    }
    return shown.append(text, done);
  }

  const std::string& stand_in(const std::string& spelling) {
    const auto [entry, is_new] = stand_in_of_.try_emplace(spelling);
    if (is_new) {
      while (taken_.contains(next_)) ++next_;
      exhausted_ = exhausted_ || next_ > kLastPrivate;
      entry->second = to_utf8(next_);
      spelling_of_.emplace(next_++, spelling);
    }
    return entry->second;
  }

  const text::Tokenizer& tokenizer_;
  bool any_spelled_ = false;
  bool exhausted_ = false;
  std::set<uint32_t> taken_;  // private-use characters of the request itself
  uint32_t next_ = kFirstPrivate;
  std::map<std::string, std::string> stand_in_of_;
  std::map<uint32_t, std::string> spelling_of_;
};

}  // namespace

Result<ChatPrompt> make_chat_prompt(const text::ChatTemplate& chat_template,
                                    const text::Tokenizer& tokenizer, Value::Dict from_client,
                                    const Value::Dict& from_model, bool add_special_tokens) {
  StandIns stand_ins(tokenizer, from_client);
  if (stand_ins.any_spelled() && !stand_ins.hide(from_client)) {
    return invalid("messages: too many different private-use characters", "messages");
  }
  from_client.insert(from_client.end(), from_model.begin(), from_model.end());
  Result<std::string> rendered = chat_template.render(from_client);
  std::vector<ByteRange> plain;
  if (!rendered.ok()) {
    Error error = rendered.error();
    error.message = stand_ins.reveal(error.message, plain);
    return error;
  }
  ChatPrompt prompt;
  prompt.text = stand_ins.any_spelled() ? stand_ins.reveal(*rendered, plain) : *std::move(rendered);
  prompt.ids = tokenizer.encode(prompt.text, add_special_tokens, plain);
  return prompt;
}

}  // namespace quire::llm
