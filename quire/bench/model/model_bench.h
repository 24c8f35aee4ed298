// ModelBench: tokens a second of a model, end to end through its engine: prefill by length, decode
// by batch.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "quire/backend/cpu/ceilings.h"
#include "quire/backend/packed_weight.h"
#include "quire/llm/options.h"

namespace quire::bench {

struct ModelBenchOptions {
  llm::Options llm;  // limits and the size of the KV cache are set by what is measured
  std::vector<int64_t> prefills = {128, 512, 2048};     // prompt tokens
  std::vector<int64_t> batches = {1, 2, 4, 8, 16, 32};  // streams that decode together
  int64_t context = 128;                                // tokens before the first decoded one
  int64_t decode_tokens = 64;                           // of each stream in the measured window
  int rounds = 3;
  bool with_ops = false;                       // also time the program's operations, see OpTable
  int64_t ceiling_bytes = int64_t{256} << 20;  // that the read bandwidth is measured on
  std::function<void(int done, int total)> on_progress = {};
};

/// One line: medians of the rounds; shares are medians of the rounds' own, of that round's
/// ceilings.
struct ModelRate {
  bool is_prefill = false;
  int64_t batch = 1;
  int64_t tokens = 0;  // prefill: of the prompt; decode: context in the middle of the window
  double seconds = 0;  // prefill: of the prompt; decode: of a step
  double tokens_per_s = 0;
  double gbs = 0;         // bytes that must be read (weights and KV, once a step) over the time
  double read_share = 0;  // of the read bandwidth
  double gops = 0;        // operations of matmuls and attention over the time
  double peak_share = 0;  // of the peak for the type of activations that most of them meet
};

/// Time of operations between two barriers, alike in all layers, over a step.
struct OpLine {
  std::string name;     // "self_attn.q_proj + k_proj + v_proj"
  int64_t count = 0;    // of such in a step
  double seconds = 0;   // of all of them
  double share = 0;     // of the step
  double gbs = 0;       // weights and KV pages; 0 where there are none
  double gops = 0;      // 0 where nothing is multiplied
  double roofline = 0;  // the least time the ceilings allow over the time; 0 where neither
};

struct OpTable {
  ModelRate step;  // batch, tokens, seconds
  backend::cpu::Ceilings ceilings;
  std::vector<OpLine> lines;  // by time
};

struct ModelBenchResult {
  std::string model;
  std::string backend;
  backend::ActType main_act = backend::ActType::kF32;
  int64_t weight_bytes = 0;
  int rounds = 0;
  backend::cpu::Ceilings ceilings;  // medians over the run
  std::vector<ModelRate> rates;
  std::vector<OpTable> ops;
};

/// Throws LoadError.
ModelBenchResult bench_model(const ModelBenchOptions& options);

/// Steps a program by hand and tells where each step's time goes; what with_ops asks for. Times and
/// ceilings are medians of the rounds, which take both.
std::vector<OpTable> time_ops(const ModelBenchOptions& options);

/// "self_attn.q_proj + k_proj": the names of a phase's operations without layer numbers, each
/// parent told once.
std::string phase_name(const std::vector<std::string>& op_names);

}  // namespace quire::bench
