// Damages small valid files in seeded ways: a reader must accept or refuse them, never crash, and
// never trust a number that the file's own size contradicts.
#include <cstdint>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "quire/base/error.h"
#include "quire/checkpoint/config_limits.h"
#include "quire/checkpoint/gguf_config.h"
#include "quire/checkpoint/gguf_source.h"
#include "quire/checkpoint/hf_config.h"
#include "quire/checkpoint/safetensors_file.h"
#include "quire/checkpoint/safetensors_source.h"
#include "quire/checkpoint/testing/little_endian.h"
#include "quire/checkpoint/testing/small_llama.h"
#include "quire/checkpoint/tokenizer_gguf.h"

namespace quire::checkpoint {
namespace {

using Bytes = std::vector<std::byte>;
constexpr int kMutations = 10'000;

/// One to four changes: a flipped bit, an extreme integer, a cut, a repeated or an inserted part.
/// Most fall into the first `head` bytes, where a file keeps what it says about itself.
void mutate(Bytes& bytes, size_t head, std::mt19937_64& random) {
  const auto below = [&](size_t limit) { return static_cast<size_t>(random() % limit); };
  for (size_t change = 0, count = 1 + below(4); change < count && !bytes.empty(); ++change) {
    const size_t reach = below(10) == 0 ? bytes.size() : std::min(head, bytes.size());
    const size_t at = below(reach);
    const auto place = bytes.begin() + static_cast<ptrdiff_t>(at);
    switch (below(6)) {
      case 0:
        bytes[at] ^= static_cast<std::byte>(1u << below(8));
        break;
      case 1:
        bytes[at] = static_cast<std::byte>(random());
        break;
      case 2: {
        constexpr uint64_t kExtremes[] = {0,
                                          1,
                                          ~uint64_t{0},
                                          uint64_t{1} << 63,
                                          uint64_t{1} << 32,
                                          (uint64_t{1} << 61) + 1,
                                          0x7fffffff,
                                          255};
        const uint64_t value = kExtremes[below(std::size(kExtremes))];
        const size_t width = size_t{1} << below(4);
        for (size_t i = 0; i < width && at + i < bytes.size(); ++i) {
          bytes[at + i] = static_cast<std::byte>(value >> (8 * i));
        }
        break;
      }
      case 3:
        bytes.resize(at);
        break;
      case 4: {
        const size_t length = 1 + below(std::min<size_t>(64, bytes.size() - at));
        const Bytes part(place, place + static_cast<ptrdiff_t>(length));
        bytes.insert(bytes.begin() + static_cast<ptrdiff_t>(below(bytes.size())), part.begin(),
                     part.end());
        break;
      }
      default:
        bytes.erase(place, place + static_cast<ptrdiff_t>(
                                       1 + below(std::min<size_t>(16, bytes.size() - at))));
    }
  }
}

/// Reads every byte that a tensor claims, so that a range outside the file is caught.
uint64_t sum_of(const StoredTensor& tensor) {
  uint64_t sum = 0;
  for (const std::byte byte : tensor.bytes) sum += static_cast<uint64_t>(byte);
  return sum;
}

struct Outcome {
  int accepted = 0;
  int refused = 0;
};

/// Runs `read` over mutations of `whole`. Everything but a LoadError that names the file fails.
Outcome run(const Bytes& whole, size_t head, const std::function<void(const Bytes&)>& read) {
  Outcome outcome;
  for (int seed = 0; seed < kMutations; ++seed) {
    std::mt19937_64 random(static_cast<uint64_t>(seed));
    Bytes bytes = whole;
    mutate(bytes, head, random);
    bytes.shrink_to_fit();  // so that a read past the end is one past the allocation
    try {
      read(bytes);
      ++outcome.accepted;
    } catch (const LoadError& error) {
      EXPECT_EQ(std::string(error.what()).rfind("file", 0), 0u) << seed << ": " << error.what();
      ++outcome.refused;
    } catch (const std::exception& error) {
      ADD_FAILURE() << "seed " << seed << ": " << error.what();
    }
  }
  // Damage is found most of the time; and not everything is refused out of hand.
  EXPECT_GT(outcome.refused, kMutations / 3);
  EXPECT_GT(outcome.accepted, kMutations / 200);
  return outcome;
}

TEST(Mutation, Gguf) {
  const Bytes whole = testing::small_llama_gguf().bytes();
  run(whole, 2200, [](const Bytes& bytes) {
    const GgufFile file(bytes, "file");
    ModelConfig config = gguf_model_config(file);
    const GgufSource source(file, nullptr);
    settle_tied_head(config, source);
    if (has_gguf_tokenizer(file.metadata())) {
      tokenizer_spec_from_gguf(gguf_tokenizer_fields(file.metadata()), "file");
    }
    for (const std::string& name : source.names()) sum_of(*source.find(name));
  });
}

TEST(Mutation, GgufOfEveryFormat) {
  const Bytes whole = testing::block_formats_gguf().bytes();
  run(whole, 1200, [](const Bytes& bytes) {
    const GgufFile file(bytes, "file");
    const GgufSource source(file, nullptr);
    for (const std::string& name : source.names()) {
      const StoredTensor& tensor = *source.find(name);
      sum_of(tensor);
      if (tensor.shape.size() != 2) continue;  // damage to the number of dimensions
      const int64_t stored = tensor.rows() * row_bytes(tensor.dtype, tensor.cols());
      EXPECT_EQ(static_cast<int64_t>(tensor.bytes.size()), stored);
    }
  });
}

TEST(Mutation, Safetensors) {
  const Bytes whole = testing::small_llama_safetensors().bytes();
  run(whole, 1200, [](const Bytes& bytes) {
    const SafetensorsFile file(bytes, "file");
    for (const StoredTensor& tensor : file.tensors()) sum_of(tensor);
  });
}

std::string_view text_of(const Bytes& bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

TEST(Mutation, Config) {
  const Bytes whole = testing::to_bytes(testing::small_llama_config_json());
  run(whole, whole.size(), [](const Bytes& bytes) {
    const JsonConfig json(text_of(bytes), "file");
    ModelConfig config = hf_model_config(json);
    hf_generation_defaults(json, config);
  });
}

TEST(Mutation, Index) {
  const Bytes whole = testing::to_bytes(
      R"({"metadata": {"total_size": 100}, "weight_map": {"a": "m-1.safetensors", )"
      R"("b": "m-1.safetensors", "c.weight": "m-2.safetensors"}})");
  run(whole, whole.size(), [](const Bytes& bytes) {
    for (const auto& [shard, names] : parse_safetensors_index(text_of(bytes), "file")) {
      EXPECT_EQ(shard.find('/'), std::string::npos);
    }
  });
}

}  // namespace
}  // namespace quire::checkpoint
