// Trace: a scheduler scenario as text: what arrives, when a step is made, who is expected to run.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace quire::sched::testing {

/// Runs a trace on a real Scheduler with a FakeModel. Returns what went wrong first, with its line,
/// or nothing. One statement a line, `#` begins a comment:
///
///   options blocks 7 block_tokens 16 budget 2048 seqs 4 context 4096 logits 64 threshold 0
///                          before all others; what is left out has the values shown, but 512
///                          blocks; also chunked 1, cache 0 (prefix cache), priority 0 (policy),
///                          swap 0 (blocks of the swap space), preemption 0 (1 = always swap, 2 =
///                          never, 0 = by cost), recompute_ns 0 (of a token), swap_ns 0 (of a
///                          block)
///                          plans 1 (in flight at most), drafts 0 (offered for each token)
///   submit a 100 max 8     request `a`: a prompt of 100 tokens, 8 new ones at most; then, if
///                          wanted: n 2 (choices, called a.0 a.1), logprobs (of the prompt),
///                          priority -1, salt xy, prefix 3 64 (the first 64 tokens are those of
///                          every other prompt with prefix 3), seed 5, stop 7 (a token), refused
///   same b 100 max 8       as submit, with the tokens of every other `same` prompt
///   step / step 5          plan, run and commit one step or several
///   launch, land           the two halves of a step
///   run                    steps until nothing is left
///   idle                   nothing is left to run
///   cancel a
///   budget 64              tokens a step from now on
///   expect a:64 b:1        of the last step: exactly who ran, and how many tokens of each
///   waiting c, preempted c, finished a, copies 1, logits 3, swapped_out 2, swapped_in 2,
///   placeholders 1, drafts 2
///                          of the last step too: the queue in order, who lost its blocks, who
///                          ended, blocks copied within the pool, logits rows, blocks copied to
///                          the swap space and back, tokens run before they were known, drafts
///                          tried. Sentences may follow `expect ...` on its line.
///   free 7                 blocks that nobody holds
///   hits 64                tokens taken from the prefix cache so far
///   swap_held 3            blocks of the swap space that sequences hold
///   restart                a new scheduler that knows nothing but what the swap space has cached
///
/// Every statement also checks the books of scheduler and pool and compares each token with the
/// same request's run alone.
std::optional<std::string> run_trace(std::string_view text);

}  // namespace quire::sched::testing
