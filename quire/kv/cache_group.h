// CacheGroup: the layers of a model that share one paging rule, and so one set of block tables.
#pragma once

#include <cstdint>
#include <vector>

namespace quire::kv {

struct CacheGroup {
  /// What a sequence keeps: every token's K and V; those of the last `window` tokens; one latent
  /// vector a token; one state a sequence.
  enum class Kind : uint8_t { kFull, kWindow, kMla, kState };

  Kind kind = Kind::kFull;
  std::vector<int32_t> layers;  // model layer indices, ascending
  int32_t block_tokens = 16;
  int32_t window = 0;       // kWindow: tokens seen, the current one included
  int64_t block_bytes = 0;  // of one block over all the layers
};

}  // namespace quire::kv
