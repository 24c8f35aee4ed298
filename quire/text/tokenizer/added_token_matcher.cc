#include "quire/text/tokenizer/added_token_matcher.h"

#include <algorithm>

#include "quire/text/tokenizer/heap_bytes.h"
#include "quire/text/tokenizer/unicode.h"

namespace quire::text {
namespace {

bool has_flag(const CodePoint& point, UnicodeClasses::Flag flag) {
  return (UnicodeClasses::get().flags(point.value) & flag) != 0;
}

bool stands_alone(std::string_view text, size_t begin, size_t end) {
  const bool word_before =
      begin > 0 && has_flag(code_point_before(text, begin), UnicodeClasses::kWord);
  const bool word_after =
      end < text.size() && has_flag(code_point_at(text, end), UnicodeClasses::kWord);
  return !word_before && !word_after;
}

/// The begin of the white space that ends at `end`, not before `floor`.
size_t spaces_before(std::string_view text, size_t end, size_t floor) {
  while (end > floor) {
    const CodePoint point = code_point_before(text, end);
    if (!has_flag(point, UnicodeClasses::kSpace)) break;
    end -= point.length;
  }
  return std::max(end, floor);
}

size_t spaces_after(std::string_view text, size_t at) {
  while (at < text.size()) {
    const CodePoint point = code_point_at(text, at);
    if (!has_flag(point, UnicodeClasses::kSpace)) break;
    at += point.length;
  }
  return at;
}

}  // namespace

AddedTokenMatcher::AddedTokenMatcher(std::span<const AddedToken> tokens)
    : tokens_(tokens.begin(), tokens.end()) {
  token_at_.push_back(-1);
  for (size_t i = 0; i < tokens_.size(); ++i) {
    const std::string& content = tokens_[i].content;
    if (content.empty()) continue;
    begins_[static_cast<uint8_t>(content[0])] = true;
    uint32_t node = 0;
    for (const char byte : content) {
      const auto next = static_cast<uint32_t>(token_at_.size());
      const auto [edge, added] =
          edges_.try_emplace((uint64_t{node} << 8) | static_cast<uint8_t>(byte), next);
      if (added) token_at_.push_back(-1);
      node = edge->second;
    }
    if (token_at_[node] < 0) token_at_[node] = static_cast<int32_t>(i);
  }
}

AddedTokenMatcher::Match AddedTokenMatcher::find(std::string_view text, size_t from) const {
  for (size_t begin = from; begin < text.size(); ++begin) {
    if (!begins_[static_cast<uint8_t>(text[begin])]) continue;
    Match longest;
    uint32_t node = 0;
    for (size_t at = begin; at < text.size(); ++at) {
      const auto edge = edges_.find((uint64_t{node} << 8) | static_cast<uint8_t>(text[at]));
      if (edge == edges_.end()) break;
      node = edge->second;
      if (const int32_t token = token_at_[node]; token >= 0) {
        longest = {&tokens_[static_cast<size_t>(token)], begin, at + 1};
      }
    }
    if (longest.token != nullptr) return longest;
  }
  return {};
}

void AddedTokenMatcher::spellings(std::string_view text, std::vector<ByteRange>& ranges) const {
  for (Match match = find(text, 0); match.token != nullptr; match = find(text, match.end)) {
    ranges.push_back({match.begin, match.end});
  }
}

void AddedTokenMatcher::split(std::string_view text, std::span<const ByteRange> plain,
                              std::vector<Segment>& segments) const {
  size_t done = 0;
  auto range = plain.begin();  // the first that ends after the match's begin
  size_t spaces_end = 0;       // of the last run of spaces that an rstrip took
  for (Match match = find(text, 0); match.token != nullptr; match = find(text, match.end)) {
    const AddedToken& token = *match.token;
    while (range != plain.end() && range->end <= match.begin) ++range;
    const bool is_plain = range != plain.end() && range->begin < match.end;
    if (token.special && is_plain) continue;
    if (token.single_word && !stands_alone(text, match.begin, match.end)) continue;
    size_t begin = match.begin;
    size_t end = match.end;
    if (token.lstrip) begin = spaces_before(text, begin, done);
    if (token.rstrip) {
      if (end >= spaces_end) spaces_end = spaces_after(text, end);
      end = spaces_end;
    }
    // A token of white space that the one before took with its rstrip is no token of its own.
    if (begin >= end) continue;
    if (done < begin) segments.push_back({done, begin, Segment::kText});
    segments.push_back({begin, end, token.id});
    done = end;
  }
  if (done < text.size()) segments.push_back({done, text.size(), Segment::kText});
}

int64_t AddedTokenMatcher::heap_size() const {
  // A node of the map: the link to the next one, then key and value.
  constexpr size_t kNode = sizeof(void*) + sizeof(std::pair<const uint64_t, uint32_t>);
  int64_t bytes = heap_bytes(tokens_) + heap_bytes(token_at_);
  for (const AddedToken& token : tokens_) bytes += heap_bytes(token.content);
  return bytes + static_cast<int64_t>(edges_.size()) * heap_block(kNode) +
         heap_block(edges_.bucket_count() * sizeof(void*));
}

}  // namespace quire::text
