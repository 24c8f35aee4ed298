#include "quire/text/tokenizer.h"

#include <algorithm>
#include <utility>

#include "quire/text/tokenizer/added_token_matcher.h"
#include "quire/text/tokenizer/bpe_model.h"
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

}  // namespace

struct Tokenizer::Impl {
  /// Working memory of one call.
  struct Workspace {
    std::vector<Segment> segments;
    std::vector<Segment> normalized_segments;
    Pieces pieces;
    BpeModel::Workspace bpe;
  };

  explicit Impl(TokenizerSpec given)
      : spec(std::move(given)),
        vocabulary(spec),
        model(spec, vocabulary),
        raw_matcher(matched_tokens(spec, false)),
        normalized_matcher(matched_tokens(spec, true)),
        pre_tokenizers(spec.pre_tokenizers),
        nfc(uses_nfc(spec)) {}

  void encode_raw(std::string_view text, bool parse_special, Workspace& work,
                  std::vector<int32_t>& ids) const;
  void encode_normalized(std::string_view text, bool parse_special, Workspace& work,
                         std::vector<int32_t>& ids) const;
  void encode_plain(std::string_view text, Workspace& work, std::vector<int32_t>& ids) const;

  const TokenizerSpec spec;
  const Vocabulary vocabulary;
  const BpeModel model;
  const AddedTokenMatcher raw_matcher;
  const AddedTokenMatcher normalized_matcher;
  const PreTokenizerChain pre_tokenizers;
  const bool nfc;
};

void Tokenizer::Impl::encode_raw(std::string_view text, bool parse_special, Workspace& work,
                                 std::vector<int32_t>& ids) const {
  raw_matcher.split(text, parse_special, work.segments);
  for (const Segment& segment : work.segments) {
    if (segment.id != Segment::kText) {
      ids.push_back(segment.id);
      continue;
    }
    const std::string_view part = text.substr(segment.begin, segment.end - segment.begin);
    if (nfc && !is_surely_nfc(part)) {
      encode_normalized(normalize_nfc(part), parse_special, work, ids);
    } else {
      encode_normalized(part, parse_special, work, ids);
    }
  }
}

void Tokenizer::Impl::encode_normalized(std::string_view text, bool parse_special, Workspace& work,
                                        std::vector<int32_t>& ids) const {
  if (normalized_matcher.empty()) return encode_plain(text, work, ids);
  work.normalized_segments.clear();
  normalized_matcher.split(text, parse_special, work.normalized_segments);
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
  std::vector<int32_t> ids;
  if (add_special_tokens) ids = impl_->spec.prefix_ids;
  Impl::Workspace work;
  impl_->encode_raw(text, parse_special, work, ids);
  if (add_special_tokens) {
    ids.insert(ids.end(), impl_->spec.suffix_ids.begin(), impl_->spec.suffix_ids.end());
  }
  return ids;
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

const TokenizerSpec& Tokenizer::spec() const {
  return impl_->spec;
}

}  // namespace quire::text
