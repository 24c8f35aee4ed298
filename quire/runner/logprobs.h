// TokenLogprob: what a model thought of one token at one position, before any sampling option.
#pragma once

#include <cstdint>
#include <vector>

namespace quire::runner {

/// ln p(token) under the raw logits (temperature 1, no penalty, bias or mask).
struct TokenLogprob {
  int32_t token = 0;
  float logprob = 0;
  int32_t rank = 0;  // 1 = the most likely token of the vocabulary
};

/// One position: the token that stands there and the most likely ones, in order of rank.
struct PositionLogprobs {
  TokenLogprob chosen;
  std::vector<TokenLogprob> top;  // as many as were asked for
};

}  // namespace quire::runner
