// TraceScript: a request mix as text: what arrives, when steps are made, in the language of the
// scheduler's test traces.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "quire/sched/request.h"
#include "quire/sched/scheduler_options.h"

namespace quire::bench {

struct TraceStatement {
  enum class Kind : uint8_t { kSubmit, kSteps, kRun, kCancel };
  Kind kind = Kind::kRun;
  sched::Request request = {};  // kSubmit
  sched::RequestId id = 0;      // kCancel
  int32_t num_steps = 0;        // kSteps
};

struct TraceScript {
  sched::SchedulerOptions options = {
      .max_num_seqs = 4, .max_model_len = 4096, .max_logits_rows = 64, .num_blocks = 512};
  std::vector<TraceStatement> statements;
  std::vector<std::string> names;  // by request id
};

/// One statement a line, `#` begins a comment:
///
///   options blocks 16 block_tokens 4 budget 2048 seqs 3 context 4096 threshold 0 chunked 1
///   submit a 5 max 12      a prompt of 5 tokens, 12 new ones at most; then, if wanted, n 2,
///   priority
///                          1, shares 16 (the first tokens, common to all requests that say so)
///   same a 5 max 12        all prompt tokens are common
///   step, step 5, run, cancel a
///
/// What test traces say beside (expect, waiting, free and so on) is skipped. A script without a
/// step or run gets a run at its end. Throws LoadError naming `where` and the line.
TraceScript parse_trace(std::string_view text, const std::string& where);

/// Continuous batching as textbooks draw it: three rows, A wants 12 tokens, B 4, C 8; D takes B's
/// row in the step after B ends.
std::string_view textbook_trace();

}  // namespace quire::bench
