// Alternatives: the changes by which a model would fit, the cheapest first.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "quire/plan/plan.h"

namespace quire::plan {

/// What has to hold beside the plan's own options.
struct Wish {
  int64_t context = 0;      // tokens of the longest sequence; 0 = as the plan's options say
  int64_t sequences = 1;    // at once ...
  int64_t tokens_each = 0;  // ... of so many tokens; 0 = as many as fit
};

/// What a change takes away, the least first.
enum class Price : uint8_t { kNothing, kStepSize, kContext, kPrecision8, kPrecision4, kDevices };

struct Alternative {
  std::string change;  // as options: "--kv-cache-dtype bfloat16"
  std::string cost;    // "half the KV precision"
  Price price = Price::kNothing;
  bool fits = false;
  int32_t devices = 1;
  int64_t rank_bytes = 0;  // of the fullest rank, without the pool
  int64_t max_model_len = 0;
  int64_t tokens_each = 0;  // of the sequences counted:
  double sequences = 0;     // at once
};

/// True when the plan fits and holds what is wished.
bool satisfies(const Plan& plan, const Wish& wish);

/// All changes tried, those that fit first, by price; among equal prices those that leave more
/// room. What the plan has already is not tried.
std::vector<Alternative> find_alternatives(const Plan& plan, const Wish& wish);

}  // namespace quire::plan
