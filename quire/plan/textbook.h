// Textbook: the formulas that courses and calculators use, to be shown beside what is counted.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace quire::plan {

/// parameters x bits / 8.
double textbook_weight_bytes(int64_t parameters, double bits);
/// 2 x layers x kv_heads x head_dim x tokens x batch x bytes (K and V).
int64_t textbook_kv_bytes(int64_t layers, int64_t kv_heads, int64_t head_dim, int64_t tokens,
                          int64_t batch, int64_t bytes);
/// 2 x hidden x tokens x batch x bytes x layers: as if every layer kept its input and its output.
int64_t textbook_activation_bytes(int64_t hidden, int64_t tokens, int64_t batch, int64_t bytes,
                                  int64_t layers);

/// One figure both ways.
struct Comparison {
  std::string name;
  std::string formula;  // with the model's numbers in it
  double textbook = 0;  // bytes
  int64_t counted = 0;  // bytes
  std::string why;      // they differ

  double difference() const { return static_cast<double>(counted) - textbook; }
};

}  // namespace quire::plan
