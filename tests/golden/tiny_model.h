// TinyModel: small Llama checkpoints made from an integer generator, the same numbers as
// tools/goldens/tiny_models.py makes.
#pragma once

#include <cstdint>
#include <map>
#include <ostream>
#include <string>
#include <string_view>
#include <vector>

#include "quire/checkpoint/model_config.h"

namespace quire::golden {

/// One variant of tests/golden/data/tiny_models.json.
struct TinyModel {
  std::string name;
  uint64_t seed = 0;
  int64_t shards = 1;
  std::string config_json;  // what config.json holds
  checkpoint::ModelConfig config;
};
/// How test logs show one.
inline void PrintTo(const TinyModel& shown, std::ostream* out) {
  *out << shown.name;
}

struct TinyTensor {
  std::vector<int64_t> shape;
  std::vector<float> values;  // rounded to the checkpoint's type
};
using TinyTensors = std::map<std::string, TinyTensor>;

std::vector<TinyModel> tiny_models();
/// Every tensor of the checkpoint by its HF name.
TinyTensors make_tensors(const TinyModel& model);
/// Sum over all tensors of bits * (1 + index % 65521), modulo 2^64.
uint64_t checksum(const TinyTensors& tensors);
/// Writes an HF folder; tensor i in order of name goes to shard i % shards.
void write_folder(const TinyModel& model, const std::string& folder);

}  // namespace quire::golden
