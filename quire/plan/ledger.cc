#include "quire/plan/ledger.h"

#include <algorithm>

#include <fmt/format.h>

#include "quire/backend/cpu/generic/matmul_order.h"
#include "quire/backend/cpu/walker.h"
#include "quire/backend/dryrun/program_memory.h"
#include "quire/runner/kv_store.h"
#include "quire/runner/sampler.h"

namespace quire::plan {
namespace {

using backend::Program;
using backend::WeightSpec;
using Part = LedgerLine::Part;

constexpr int64_t kMib = int64_t{1} << 20;

/// "model.layers.3.mlp.down_proj.weight" is a down_proj.
std::string kind_of(std::string_view tensor) {
  size_t end = tensor.rfind('.');
  if (end == std::string_view::npos) return std::string(tensor);
  size_t begin = tensor.rfind('.', end - 1);
  begin = begin == std::string_view::npos ? 0 : begin + 1;
  return std::string(tensor.substr(begin, end - begin));
}

int64_t code_bits(const WeightSpec& spec) {
  switch (spec.layout) {
    case backend::Layout::kDense:
      return dtype_info(spec.dtype).block_bytes * 8;
    case backend::Layout::kInt8Group:
      return 8;
    case backend::Layout::kInt4Group:
      return 4;
  }
  return 0;
}

std::string format_text(const WeightSpec& spec) {
  if (spec.layout == backend::Layout::kDense && spec.dtype != DType::kF32) return "dense 16-bit";
  return backend::dryrun::layout_text(spec);
}

void add_weights(const Program& program, std::vector<LedgerLine>& lines) {
  const size_t first = lines.size();
  for (const auto& weight : program.weights) {
    const WeightSpec& spec = weight->spec;
    const std::string kind = kind_of(spec.name);
    const std::string format = format_text(spec);
    auto line = std::find_if(
        lines.begin() + static_cast<std::ptrdiff_t>(first), lines.end(),
        [&](const LedgerLine& each) { return each.name == kind && each.format == format; });
    if (line == lines.end()) {
      lines.push_back({.part = Part::kWeights, .name = kind, .format = format, .note = {}});
      line = lines.end() - 1;
    }
    const int64_t scales = backend::scale_bytes(spec);
    ++line->count;
    line->parameters += spec.in * spec.out;
    line->bytes += weight->bytes();
    line->scale_bytes += scales;
    line->padding_bytes += weight->bytes() - spec.in * spec.out * code_bits(spec) / 8 - scales;
  }
}

/// A tied head reads the embedding's table, which is counted there.
void add_tied_head(const Program& program, std::vector<LedgerLine>& lines) {
  if (program.ops.empty() || program.ops.front().kind != backend::OpKind::kEmbed) return;
  const int32_t table = program.ops.front().weight;
  for (const backend::Op& op : program.ops) {
    if (op.kind != backend::OpKind::kMatmul || op.weight != table) continue;
    lines.push_back({.part = Part::kWeights,
                     .name = "lm_head",
                     .format = "the embedding's",
                     .note = "tied: the embedding's table, counted once"});
    return;
  }
}

void add_vectors(const Program& program, std::vector<LedgerLine>& lines) {
  LedgerLine line{.part = Part::kWeights,
                  .name = "norms, biases, rotary",
                  .format = "fp32 vectors",
                  .note = {}};
  for (const auto& vector : program.vectors) {
    ++line.count;
    line.parameters += static_cast<int64_t>(vector.size());
    line.bytes += static_cast<int64_t>(vector.size() * sizeof(float));
  }
  lines.push_back(std::move(line));
}

void add_gpu_estimates(const LedgerOptions& options, std::vector<LedgerLine>& lines) {
  const auto add = [&lines](std::string name, int64_t bytes, std::string note) {
    lines.push_back({.part = Part::kOther,
                     .name = std::move(name),
                     .format = {},
                     .bytes = bytes,
                     .estimate = true,
                     .note = std::move(note)});
  };
  add("CUDA context", 512 * kMib,
      "0.4 to 0.6 GiB by nvidia-smi for a process that holds a context and its kernels");
  add("CUDA graphs", options.enforce_eager ? 0 : 768 * kMib,
      options.enforce_eager ? "none with --enforce-eager"
                            : "0.5 to 1 GiB in what vLLM logs after capturing some 35 batch sizes");
  add("library workspaces", options.device_name.starts_with("A") ? 8 * kMib : 32 * kMib,
      "cuBLAS' documented default workspace: 32 MiB from Hopper on, about 8 MiB before");
  const int64_t ranks = int64_t{options.tensor_parallel} * options.pipeline_parallel;
  if (ranks > 1) {
    add("communication buffers", 256 * kMib + 2 * options.max_tokens * options.hidden_size * 2,
        "NCCL: 4 MiB (NCCL_BUFFSIZE) for each of about 32 channels and direction; and a step's "
        "activations twice, 16 bits");
  }
}

void add_cpu_estimates(const LedgerOptions& options, const RankShare& share,
                       std::vector<LedgerLine>& lines) {
  if (share.rank == 0) {
    lines.push_back({.part = Part::kOther,
                     .name = "tokenizer",
                     .format = {},
                     .bytes = options.vocab_size * 200,
                     .estimate = true,
                     .note = "200 bytes a vocabulary entry: its text, its id and its merges, as "
                             "measured on a vocabulary of 49,152"});
  }
  lines.push_back({.part = Part::kOther,
                   .name = "process",
                   .format = {},
                   .bytes = 14 * kMib + options.workers * kMib / 4,
                   .estimate = true,
                   .note = "code, heap and stacks of an idle server, as measured"});
  const int64_t ranks = int64_t{options.tensor_parallel} * options.pipeline_parallel;
  if (ranks > 1) {
    lines.push_back({.part = Part::kOther,
                     .name = "communication buffers",
                     .format = {},
                     .bytes = 2 * options.max_tokens * options.hidden_size * 4,
                     .estimate = true,
                     .note = "a step's activations twice, fp32"});
  }
}

ArenaPeak find_peak(const Program& program) {
  ArenaPeak peak;
  const auto size_of = [&](const backend::TensorDecl& t) {
    return t.row_bytes * program.max_rows(t.rows);
  };
  for (const auto& tensor : program.tensors) {
    if (tensor.first_op < 0) continue;
    peak.sum_bytes += size_of(tensor);
    ++peak.num_tensors;
  }
  int32_t fullest = 0;
  for (int32_t i = 0; i < static_cast<int32_t>(program.ops.size()); ++i) {
    int64_t live = 0;
    for (const auto& tensor : program.tensors) {
      if (tensor.first_op >= 0 && tensor.first_op <= i && i <= tensor.last_op) {
        live += size_of(tensor);
      }
    }
    if (live <= peak.live_bytes) continue;
    peak.live_bytes = live;
    fullest = i;
  }
  if (program.ops.empty()) return peak;
  peak.operation = program.ops[static_cast<size_t>(fullest)].name;
  for (const auto& tensor : program.tensors) {
    if (tensor.first_op >= 0 && tensor.first_op <= fullest && fullest <= tensor.last_op) {
      peak.live.emplace_back(tensor.name, size_of(tensor));
    }
  }
  std::stable_sort(peak.live.begin(), peak.live.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  return peak;
}

}  // namespace

int64_t RankLedger::bytes(Part part) const {
  int64_t sum = 0;
  for (const LedgerLine& line : lines) {
    if (line.part == part) sum += line.bytes;
  }
  return sum;
}

int64_t RankLedger::fixed_bytes() const {
  int64_t sum = 0;
  for (const LedgerLine& line : lines) sum += line.bytes;
  return sum;
}

int64_t RankLedger::exact_bytes() const {
  int64_t sum = 0;
  for (const LedgerLine& line : lines) {
    if (!line.estimate) sum += line.bytes;
  }
  return sum;
}

RankLedger count_ledger(const StageProgram& stage, const RankShare& share,
                        const LedgerOptions& options) {
  const Program& program = stage.program;
  RankLedger ledger;
  ledger.share = share;
  add_weights(program, ledger.lines);
  add_tied_head(program, ledger.lines);
  add_vectors(program, ledger.lines);
  ledger.lines.push_back({.part = Part::kArena,
                          .name = "activations",
                          .format = "by liveness",
                          .count = static_cast<int64_t>(program.tensors.size()),
                          .bytes = program.arena_bytes,
                          .note = {}});
  const bool gpu = options.kind == Device::Kind::kGpu;
  ledger.lines.push_back(
      {.part = Part::kScratch,
       .name = gpu ? "attention's partials" : "workers' scratch",
       .format = "rotary tables, attention",
       .bytes = backend::cpu::Walker::scratch_bytes(program, options.workers),
       .estimate = gpu,
       .note = gpu ? "by the CPU backend's rule, a worker a multiprocessor" : ""});
  if (!gpu) {
    ledger.lines.push_back(
        {.part = Part::kOther,
         .name = "matmul scratch",
         .format = "packed activations, partial sums",
         .count = options.workers,
         .bytes = options.workers * static_cast<int64_t>(sizeof(backend::cpu::MatmulScratch)),
         .note = {}});
  }
  if (share.has_head && share.tp_rank == 0) {
    ledger.lines.push_back(
        {.part = Part::kOther,
         .name = "sampling",
         .format = "scores a worker",
         .bytes = runner::Sampler::scratch_bytes(options.vocab_size, gpu ? 1 : options.workers),
         .note = {}});
  }
  if (gpu) {
    add_gpu_estimates(options, ledger.lines);
  } else {
    add_cpu_estimates(options, share, ledger.lines);
  }
  ledger.arena_peak = find_peak(program);
  if (program.logits >= 0) {
    const auto& logits = program.tensors[static_cast<size_t>(program.logits)];
    ledger.logits_bytes = logits.row_bytes * program.max_rows(logits.rows);
  }
  ledger.kv_block_bytes = runner::KvStore::bytes_for(stage.cache_groups, 1);
  for (const auto& group : stage.cache_groups) {
    ledger.kv_token_bytes += group.block_bytes() / group.block_tokens;
  }
  return ledger;
}

int64_t blocks_for(int64_t tokens, int64_t block_tokens, int64_t window) {
  const auto blocks = [block_tokens](int64_t n) { return (n + block_tokens - 1) / block_tokens; };
  if (window == 0 || tokens <= window) return blocks(tokens);
  return std::min(blocks(tokens), blocks(window) + 1);
}

}  // namespace quire::plan
