#include "quire/text/tokenizer.h"

#include <algorithm>
#include <utility>

#include "quire/text/tokenizer/added_token_matcher.h"
#include "quire/text/tokenizer/bpe_model.h"
#include "quire/text/tokenizer/heap_bytes.h"
#include "quire/text/tokenizer/normalize.h"
#include "quire/text/tokenizer/pre_tokenizer_chain.h"
#include "quire/text/tokenizer/vocabulary.h"

namespace quire::text {
namespace {

bool uses_nfc(const TokenizerSpec& spec) {
  return std::find(spec.normalizers.begin(), spec.normalizers.end(), Normalizer::kNfc) !=
         spec.normalizers.end();
}

/// The added tokens whose `normalized` flag is this, with their contents as they are matched.
std::vector<AddedToken> matched_tokens(const TokenizerSpec& spec, bool normalized) {
  std::vector<AddedToken> tokens;
  for (const AddedToken& token : spec.added_tokens) {
    if (token.normalized != normalized) continue;
    tokens.push_back(token);
    if (normalized && uses_nfc(spec)) tokens.back().content = normalize_nfc(token.content);
  }
  return tokens;
}

/// The special tokens, in the spelling of each in which they are matched.
std::vector<AddedToken> special_tokens(const TokenizerSpec& spec) {
  std::vector<AddedToken> tokens = matched_tokens(spec, false);
  for (AddedToken& token : matched_tokens(spec, true)) tokens.push_back(std::move(token));
  std::erase_if(tokens, [](const AddedToken& token) { return !token.special; });
  return tokens;
}

int64_t spec_bytes(const TokenizerSpec& spec) {
  int64_t bytes = heap_bytes(spec.vocab) + heap_bytes(spec.merges) + heap_bytes(spec.added_tokens);
  for (const std::string& token : spec.vocab) bytes += heap_bytes(token);
  for (const auto& [left, right] : spec.merges) bytes += heap_bytes(left) + heap_bytes(right);
  for (const AddedToken& token : spec.added_tokens) bytes += heap_bytes(token.content);
  return bytes;
}

/// The `plain` ranges that touch [begin, end), as seen from there. Parts come in order: ranges that
/// lie behind one are taken off `plain`.
void cut_ranges(std::span<const ByteRange>& plain, size_t begin, size_t end,
                std::vector<ByteRange>& cut) {
  while (!plain.empty() && plain.front().end <= begin) plain = plain.subspan(1);
  cut.clear();
  for (const ByteRange& range : plain) {
    if (range.begin >= end) break;
    cut.push_back({std::max(range.begin, begin) - begin, std::min(range.end, end) - begin});
  }
}

/// Moves ranges of `part` to where they lie in its normal form. The form of a text that is cut at
/// the edge of a special token is the forms of its parts.
void normalize_ranges(std::string_view part, std::vector<ByteRange>& ranges) {
  size_t at = 0;
  size_t normal_at = 0;
  const auto move = [&](size_t& edge) {
    normal_at += normalize_nfc(part.substr(at, edge - at)).size();
    at = edge;
    edge = normal_at;
  };
  for (ByteRange& range : ranges) {
    move(range.begin);
    move(range.end);
  }
}

}  // namespace

struct Tokenizer::Impl {
  /// Working memory of one call.
  struct Workspace {
    std::vector<Segment> segments;
    std::vector<Segment> normalized_segments;
    std::vector<ByteRange> plain;  // of one segment
    Pieces pieces;
    BpeModel::Workspace bpe;
  };

  explicit Impl(TokenizerSpec given)
      : spec(std::move(given)),
        vocabulary(spec),
        model(spec, vocabulary),
        raw_matcher(matched_tokens(spec, false)),
        normalized_matcher(matched_tokens(spec, true)),
        special_matcher(special_tokens(spec)),
        pre_tokenizers(spec.pre_tokenizers),
        nfc(uses_nfc(spec)) {}

  std::vector<int32_t> encode(std::string_view text, bool add_special_tokens,
                              std::span<const ByteRange> plain) const;
  void encode_raw(std::string_view text, std::span<const ByteRange> plain, Workspace& work,
                  std::vector<int32_t>& ids) const;
  void encode_normalized(std::string_view text, Workspace& work, std::vector<int32_t>& ids) const;
  void encode_plain(std::string_view text, Workspace& work, std::vector<int32_t>& ids) const;

  const TokenizerSpec spec;
  const Vocabulary vocabulary;
  const BpeModel model;
  const AddedTokenMatcher raw_matcher;
  const AddedTokenMatcher normalized_matcher;
  const AddedTokenMatcher special_matcher;
  const PreTokenizerChain pre_tokenizers;
  const bool nfc;
};

std::vector<int32_t> Tokenizer::Impl::encode(std::string_view text, bool add_special_tokens,
                                             std::span<const ByteRange> plain) const {
  std::vector<int32_t> ids;
  if (add_special_tokens) ids = spec.prefix_ids;
  Workspace work;
  encode_raw(text, plain, work, ids);
  if (add_special_tokens) ids.insert(ids.end(), spec.suffix_ids.begin(), spec.suffix_ids.end());
  return ids;
}

void Tokenizer::Impl::encode_raw(std::string_view text, std::span<const ByteRange> plain,
                                 Workspace& work, std::vector<int32_t>& ids) const {
  raw_matcher.split(text, plain, work.segments);
  for (const Segment& segment : work.segments) {
    if (segment.id != Segment::kText) {
      ids.push_back(segment.id);
      continue;
    }
    const std::string_view part = text.substr(segment.begin, segment.end - segment.begin);
    const bool needs_ranges = !normalized_matcher.empty() && !plain.empty();
    work.plain.clear();
    if (needs_ranges) cut_ranges(plain, segment.begin, segment.end, work.plain);
    if (nfc && !is_surely_nfc(part)) {
      if (needs_ranges) normalize_ranges(part, work.plain);
      encode_normalized(normalize_nfc(part), work, ids);
    } else {
      encode_normalized(part, work, ids);
    }
  }
}

void Tokenizer::Impl::encode_normalized(std::string_view text, Workspace& work,
                                        std::vector<int32_t>& ids) const {
  if (normalized_matcher.empty()) return encode_plain(text, work, ids);
  work.normalized_segments.clear();
  normalized_matcher.split(text, work.plain, work.normalized_segments);
  for (const Segment& segment : work.normalized_segments) {
    if (segment.id != Segment::kText) {
      ids.push_back(segment.id);
    } else {
      encode_plain(text.substr(segment.begin, segment.end - segment.begin), work, ids);
    }
  }
}

void Tokenizer::Impl::encode_plain(std::string_view text, Workspace& work,
                                   std::vector<int32_t>& ids) const {
  pre_tokenizers.run(text, work.pieces);
  for (const Piece& piece : work.pieces.pieces) {
    model.encode(work.pieces.text.substr(piece.begin, piece.end - piece.begin), work.bpe, ids);
  }
}

Tokenizer::Tokenizer(TokenizerSpec spec) : impl_(std::make_unique<Impl>(std::move(spec))) {}
Tokenizer::~Tokenizer() = default;

std::vector<int32_t> Tokenizer::encode(std::string_view text, bool add_special_tokens,
                                       bool parse_special) const {
  if (parse_special) return impl_->encode(text, add_special_tokens, {});
  const ByteRange all{0, text.size()};
  return impl_->encode(text, add_special_tokens, std::span(&all, 1));
}

std::vector<int32_t> Tokenizer::encode(std::string_view text, bool add_special_tokens,
                                       std::span<const ByteRange> plain) const {
  return impl_->encode(text, add_special_tokens, plain);
}

std::vector<ByteRange> Tokenizer::special_spellings(std::string_view text) const {
  std::vector<ByteRange> ranges;
  impl_->special_matcher.spellings(text, ranges);
  return ranges;
}

std::string Tokenizer::decode(std::span<const int32_t> ids, bool skip_special_tokens) const {
  std::string bytes;
  for (const int32_t id : ids) {
    if (!skip_special_tokens || !is_special(id)) bytes += token_bytes(id);
  }
  return bytes;
}

std::string_view Tokenizer::token_bytes(int32_t id) const {
  return impl_->vocabulary.contains(id) ? impl_->vocabulary.bytes(id) : std::string_view();
}

bool Tokenizer::is_special(int32_t id) const {
  return impl_->vocabulary.contains(id) && impl_->vocabulary.is_special(id);
}

int32_t Tokenizer::token_id(std::string_view content) const {
  return content.empty() ? -1 : impl_->vocabulary.find_content(content);
}

int64_t Tokenizer::vocab_size() const {
  return impl_->vocabulary.size();
}

int64_t Tokenizer::heap_size() const {
  return spec_bytes(impl_->spec) + impl_->vocabulary.heap_size() + impl_->model.heap_size() +
         impl_->raw_matcher.heap_size() + impl_->normalized_matcher.heap_size() +
         impl_->special_matcher.heap_size();
}

const TokenizerSpec& Tokenizer::spec() const {
  return impl_->spec;
}

}  // namespace quire::text
