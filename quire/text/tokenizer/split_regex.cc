#include "quire/text/tokenizer/split_regex.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <array>
#include <optional>

#include "quire/base/error.h"
#include "quire/text/tokenizer/unicode.h"

namespace quire::text {
namespace {

constexpr size_t kMaxPatternBytes = 1 << 16;
constexpr uint32_t kMatchLimit = 20'000'000;
constexpr uint32_t kHeapLimitKib = 64 << 10;
constexpr size_t kJitStackBytes = 1 << 20;

template <auto kFree>
struct Release {
  template <typename T>
  void operator()(T* pointer) const {
    kFree(pointer);
  }
};
using Code = std::unique_ptr<pcre2_code, Release<pcre2_code_free>>;
using CompileContext = std::unique_ptr<pcre2_compile_context, Release<pcre2_compile_context_free>>;
using MatchData = std::unique_ptr<pcre2_match_data, Release<pcre2_match_data_free>>;
using MatchContext = std::unique_ptr<pcre2_match_context, Release<pcre2_match_context_free>>;
using JitStack = std::unique_ptr<pcre2_jit_stack, Release<pcre2_jit_stack_free>>;

[[noreturn]] void fail(std::string_view pattern, std::string_view expected,
                       std::string_view found) {
  throw LoadError("tokenizer", "pre_tokenizer pattern " + std::string(pattern), expected, found);
}

/// Walks a pattern once and writes it anew, so that PCRE2 reads it as Oniguruma would.
class Translator {
 public:
  explicit Translator(std::string_view pattern) : pattern_(pattern) {}

  std::string run() {
    while (at_ < pattern_.size()) step();
    return std::move(out_);
  }

 private:
  char next(size_t ahead = 1) const {
    return at_ + ahead < pattern_.size() ? pattern_[at_ + ahead] : '\0';
  }
  void copy(size_t count) {
    out_ += pattern_.substr(at_, count);
    at_ += count;
  }

  void step() {
    const char c = pattern_[at_];
    if (c == '\\') {
      escape();
    } else if (in_class_) {
      in_class(c);
    } else if (c == '[') {
      in_class_ = true;
      copy(next() == '^' ? 2 : 1);
      if (at_ < pattern_.size() && pattern_[at_] == ']') copy(1);  // literal at the start
    } else if (c == '(' && next() == '?') {
      group();
    } else if (c == '}' && next() == '+') {
      fail(pattern_, "no quantifier on a counted one", "}+");
    } else {
      copy(1);
    }
  }

  void in_class(char c) {
    if (c == '[' && next() == ':') {
      const size_t end = pattern_.find(":]", at_);
      if (end != std::string_view::npos) return copy(end + 2 - at_);
    }
    if (c == '[') fail(pattern_, "no class inside a class", "[");
    if (c == '&' && next() == '&') fail(pattern_, "no intersection of classes", "&&");
    if (c == ']') in_class_ = false;
    copy(1);
  }

  // In Oniguruma \h is a hexadecimal digit and \w follows Unicode's definition of a word.
  void escape() {
    const char kind = next();
    const std::string_view members = kind == 'h' || kind == 'H'   ? R"(0-9a-fA-F)"
                                     : kind == 'w' || kind == 'W' ? R"(\p{L}\p{M}\p{Nd}\p{Pc})"
                                                                  : std::string_view();
    if (members.empty()) {
      const size_t close = next(2) == '{' ? pattern_.find('}', at_) : std::string_view::npos;
      return copy(close == std::string_view::npos ? 2 : close + 1 - at_);
    }
    const bool negated = kind == 'H' || kind == 'W';
    if (in_class_ && negated) fail(pattern_, R"(no \H or \W inside a class)", R"(\H or \W)");
    if (!in_class_) out_ += negated ? "[^" : "[";
    out_ += members;
    if (!in_class_) out_ += ']';
    at_ += 2;
  }

  // Ruby's option m lets the dot match newlines; PCRE2 calls that s.
  void group() {
    copy(2);
    size_t end = at_;
    while (end < pattern_.size() && std::string_view("imx-").find(pattern_[end]) < 4) ++end;
    if (end == pattern_.size() || (pattern_[end] != ':' && pattern_[end] != ')')) return;
    for (; at_ < end; ++at_) out_ += pattern_[at_] == 'm' ? 's' : pattern_[at_];
  }

  std::string_view pattern_;
  size_t at_ = 0;
  bool in_class_ = false;
  std::string out_;
};

void append_utf8(char32_t value, std::string& out) {
  const auto tail = [&](unsigned shift) {
    out += static_cast<char>(0x80 | ((value >> shift) & 0x3F));
  };
  if (value < 0x10000) {
    out += static_cast<char>(0xE0 | (value >> 12));
  } else {
    out += static_cast<char>(0xF0 | (value >> 18));
    tail(12);
  }
  tail(6);
  tail(0);
}

/// A text of the same length that is valid UTF-8 and that PCRE2's older tables divide as the newer
/// ones divide `text`; nothing when that is `text` itself.
std::optional<std::string> readable_copy(std::string_view text) {
  constexpr char kSubstitute = '\x1A';
  std::optional<std::string> copy;
  size_t done = 0;
  for (size_t at = 0; at < text.size();) {
    const CodePoint point = code_point_at(text, at);
    const size_t begin = at;
    at += point.length;
    if (point.length < 3 && point.value != kInvalidByte) continue;
    const char32_t stand = point.value == kInvalidByte ? kInvalidByte : stand_in(point.value);
    if (stand == point.value && stand != kInvalidByte) continue;
    if (!copy) copy.emplace();
    copy->append(text.substr(done, begin - done));
    if (stand == kInvalidByte) {
      *copy += kSubstitute;
    } else {
      append_utf8(stand, *copy);
    }
    done = at;
  }
  if (copy) copy->append(text.substr(done));
  return copy;
}

}  // namespace

struct SplitRegex::Impl {
  Code code;
  bool jit = false;
};

SplitRegex::SplitRegex(const std::string& pattern) : impl_(std::make_unique<Impl>()) {
  const std::string translated = translate_pattern(pattern);
  const CompileContext context(pcre2_compile_context_create(nullptr));
  pcre2_set_newline(context.get(), PCRE2_NEWLINE_LF);
  pcre2_set_max_pattern_length(context.get(), kMaxPatternBytes);
  int error = 0;
  PCRE2_SIZE offset = 0;
  impl_->code.reset(pcre2_compile(reinterpret_cast<PCRE2_SPTR>(translated.data()),
                                  translated.size(),
                                  PCRE2_UTF | PCRE2_UCP | PCRE2_MULTILINE | PCRE2_NEVER_BACKSLASH_C,
                                  &error, &offset, context.get()));
  if (impl_->code == nullptr) {
    std::array<PCRE2_UCHAR, 256> message{};
    pcre2_get_error_message(error, message.data(), message.size());
    fail(pattern, "a regular expression",
         std::string(reinterpret_cast<const char*>(message.data())) + " at offset " +
             std::to_string(offset));
  }
  impl_->jit = pcre2_jit_compile(impl_->code.get(), PCRE2_JIT_COMPLETE) == 0;
}

SplitRegex::~SplitRegex() = default;
SplitRegex::SplitRegex(SplitRegex&&) noexcept = default;
SplitRegex& SplitRegex::operator=(SplitRegex&&) noexcept = default;

struct SplitRegex::Matcher::State {
  const pcre2_code* code = nullptr;
  JitStack stack;
  MatchContext context;
  MatchData data;

  int match(std::string_view subject, size_t at) const {
    const auto run = [&](uint32_t options) {
      return pcre2_match(code, reinterpret_cast<PCRE2_SPTR>(subject.data()), subject.size(), at,
                         PCRE2_NO_UTF_CHECK | options, data.get(), context.get());
    };
    const int found = run(0);
    return found == PCRE2_ERROR_JIT_STACKLIMIT ? run(PCRE2_NO_JIT) : found;
  }
};

SplitRegex::Matcher::Matcher(const SplitRegex& regex) : state_(std::make_unique<State>()) {
  state_->code = regex.impl_->code.get();
  state_->context.reset(pcre2_match_context_create(nullptr));
  state_->data.reset(pcre2_match_data_create(1, nullptr));
  pcre2_set_match_limit(state_->context.get(), kMatchLimit);
  pcre2_set_heap_limit(state_->context.get(), kHeapLimitKib);
  if (!regex.impl_->jit) return;
  state_->stack.reset(pcre2_jit_stack_create(kJitStackBytes / 32, kJitStackBytes, nullptr));
  pcre2_jit_stack_assign(state_->context.get(), nullptr, state_->stack.get());
}

SplitRegex::Matcher::~Matcher() = default;

void SplitRegex::Matcher::find_all(std::string_view text, size_t offset,
                                   std::vector<Piece>& matches) {
  const std::optional<std::string> copy = readable_copy(text);
  const std::string_view subject = copy ? std::string_view(*copy) : text;
  std::optional<size_t> last_end;
  for (size_t at = 0; at <= subject.size();) {
    if (state_->match(subject, at) < 0) return;
    const PCRE2_SIZE* bounds = pcre2_get_ovector_pointer(state_->data.get());
    const Piece piece{bounds[0], bounds[1]};
    if (piece.begin == piece.end && last_end == piece.end) {
      // An empty match right behind the last one is passed over, with the code point there.
      at = piece.end < subject.size() ? piece.end + code_point_at(subject, piece.end).length
                                      : subject.size() + 1;
      continue;
    }
    matches.push_back({piece.begin + offset, piece.end + offset});
    last_end = at = piece.end;
  }
}

std::string escape_pattern(std::string_view literal) {
  std::string pattern;
  for (const char c : literal) {
    if (std::string_view(R"(\.+*?()|[]{}^$#&-~/)").find(c) != std::string_view::npos) {
      pattern += '\\';
    }
    pattern += c;
  }
  return pattern;
}

std::string translate_pattern(std::string_view pattern) {
  return Translator(pattern).run();
}

}  // namespace quire::text
