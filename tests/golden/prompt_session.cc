#include "tests/golden/prompt_session.h"

#include <algorithm>
#include <numeric>

#include "quire/base/check.h"
#include "quire/base/error.h"
#include "quire/models/program_recorder.h"
#include "quire/models/registry.h"

namespace quire::golden {

using backend::GroupMeta;
using backend::KvSlab;
using backend::Program;

PromptSession::PromptSession(backend::Backend& backend, const checkpoint::TensorSource& tensors,
                             const checkpoint::ModelConfig& config, const Options& options)
    : backend_(backend), block_tokens_(options.block_tokens), vocab_size_(config.vocab_size) {
  const auto model =
      models::load_model(config, weights::WeightScope(tensors, backend, options.load));
  const auto groups = model->cache_groups(options.kv_dtype, options.block_tokens);
  auto program = std::make_shared<const Program>(
      models::record_program(*model, {.max_tokens = options.max_context,
                                      .max_logits = options.max_context,
                                      .cache_groups = groups}));
  for (const backend::Op& op : program->ops) {
    const std::string missing = backend.unsupported(*program, op);
    if (!missing.empty()) throw LoadError(op.name, missing);
  }
  const int64_t blocks = (options.max_context + block_tokens_ - 1) / block_tokens_;
  std::vector<KvSlab> slabs;
  for (const auto& group : groups) {
    const int64_t stride = blocks * group.block_layer_bytes();
    slabs_.emplace_back(stride * group.num_layers, MemoryTag::kKvCache, nullptr);
    slabs.push_back({.data = slabs_.back().data(), .layer_stride = stride, .num_blocks = blocks});
  }
  block_table_.resize(static_cast<size_t>(blocks));
  std::iota(block_table_.rbegin(), block_table_.rend(), 0);
  backend.load(std::move(program), slabs);
}

std::vector<std::vector<float>> PromptSession::run(std::span<const int32_t> ids,
                                                   std::span<const int32_t> positions,
                                                   int64_t chunk) {
  std::vector<std::vector<float>> logits;
  const auto size = static_cast<int64_t>(ids.size());
  for (int64_t begin = 0; begin < size; begin += chunk) {
    const int64_t end = std::min(begin + chunk, size);
    std::vector<int32_t> rows;
    for (const int32_t position : positions) {
      if (position >= begin && position < end)
        rows.push_back(static_cast<int32_t>(position - begin));
    }
    const auto part = ids.subspan(static_cast<size_t>(begin), static_cast<size_t>(end - begin));
    for (auto& row : step(part, begin, rows)) logits.push_back(std::move(row));
  }
  return logits;
}

std::vector<std::vector<float>> PromptSession::step(std::span<const int32_t> ids, int64_t begin,
                                                    std::span<const int32_t> logits_rows) {
  std::vector<int32_t> positions(ids.size());
  std::iota(positions.begin(), positions.end(), static_cast<int32_t>(begin));
  std::vector<int32_t> slots;
  for (const int32_t position : positions) {
    const int32_t block = block_table_[static_cast<size_t>(position / block_tokens_)];
    slots.push_back(block * block_tokens_ + position % block_tokens_);
  }
  const std::vector<int32_t> query_start = {0, static_cast<int32_t>(ids.size())};
  const std::vector<int32_t> context_len = {static_cast<int32_t>(begin) + query_start[1]};
  const std::vector<GroupMeta> groups = {
      {.slots = slots,
       .block_tables = block_table_,
       .table_width = static_cast<int32_t>(block_table_.size())}};
  backend_.launch({.token_ids = ids,
                   .positions = positions,
                   .query_start = query_start,
                   .context_len = context_len,
                   .logits_rows = logits_rows,
                   .groups = groups});
  backend_.wait();
  std::vector<std::vector<float>> logits;
  for (size_t r = 0; r < logits_rows.size(); ++r) {
    const float* row = backend_.logits() + static_cast<int64_t>(r) * backend_.logits_stride();
    logits.emplace_back(row, row + vocab_size_);
  }
  return logits;
}

}  // namespace quire::golden
