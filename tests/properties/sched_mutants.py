#!/usr/bin/env python3
"""Copies quire/kv and quire/sched with bugs planted in them, one of which a program can switch on.

The bugs are listed here, so that the product's own sources carry no trace of them. A line that no longer occurs exactly
once stops the build: the mutant must be written anew for the code as it has become.
"""
import pathlib
import sys

# name, file, the code as it is, the code with the bug (or several such triples); MUTANT tells whether it is on.
MUTANTS = [
    ("lost_release", "kv/block_table.cc",
     "    pool_->release(blocks_.back());",
     "    if (!MUTANT || blocks_.size() != 2) pool_->release(blocks_.back());"),
    ("double_share", "kv/block_table.h",
     "    pool_->share(block);\n    blocks_.push_back(block);",
     "    pool_->share(block);\n    if (MUTANT) pool_->share(block);\n    blocks_.push_back(block);"),
    ("fork_without_share", "kv/block_table.cc",
     "  for (const BlockId block : blocks_) pool_->share(block);",
     "  for (const BlockId block : blocks_) {\n    if (!MUTANT) pool_->share(block);\n  }"),
    ("write_into_a_shared_block", "kv/block_table.cc",
     "  if (!is_shared(index)) return std::nullopt;",
     "  if (MUTANT || !is_shared(index)) return std::nullopt;"),
    ("copy_forgotten", "sched/scheduler_plan.cc",
     "      write_op(BlockOp::Kind::kCopy, *copy);",
     "      if (!MUTANT) write_op(BlockOp::Kind::kCopy, *copy);"),
    ("hit_cap_off_by_one", "sched/scheduler_cache.cc",
     "  return (sequence.num_tokens() - 1) / pool_.block_tokens();",
     "  return (sequence.num_tokens() - (MUTANT ? 0 : 1)) / pool_.block_tokens();"),
    ("stale_page", "kv/block_pool.cc",
     "    index_.remove(block);\n    ++num_evictions_;",
     "    if (!MUTANT) index_.remove(block);\n    ++num_evictions_;"),
    ("tokens_not_compared", "kv/prefix_index.cc",
     "  return std::ranges::equal(this->tokens(block), tokens) ? block : kNone;",
     "  return MUTANT || std::ranges::equal(this->tokens(block), tokens) ? block : kNone;"),
    ("parent_not_compared", "kv/prefix_index.cc",
     "!(entry(block).parent == parent)",
     "(!MUTANT && !(entry(block).parent == parent))"),
    ("parent_not_hashed", "kv/block_hash.cc",
     "{parent.low, parent.high, own.low64, own.high64}",
     "{MUTANT ? 0 : parent.low, MUTANT ? 0 : parent.high, own.low64, own.high64}"),
    ("published_too_early", "sched/scheduler_plan.cc",
     "  ++num_in_flight_;\n",
     "  ++num_in_flight_;\n  if (MUTANT && next_step_ % 2 == 0) publish_computed(*step_);\n"),
    ("hit_counted_short", "sched/scheduler_cache.cc",
     "  sequence.num_computed += num_tokens;",
     "  sequence.num_computed += num_tokens - (MUTANT && num_tokens > 0 ? block_tokens : 0);"),
    ("scored_prompt_shares", "sched/scheduler_cache.cc",
     "  return sequence.id.choice > 0 || ",
     "  return MUTANT || sequence.id.choice > 0 || "),
    ("waits_for_ever", "sched/scheduler_plan.cc",
     "  step_->claimed.clear();",
     "  if (!MUTANT) step_->claimed.clear();"),
    ("budget_exceeded", "sched/chunk.cc",
     "  int32_t n = std::min(wanted, budget.tokens);",
     "  int32_t n = std::min(wanted, budget.tokens + (MUTANT ? 1 : 0));"),
    ("cached_block_goes_first", "kv/block_pool.cc",
     "  if (is_published(block)) return free_.push_back(block);",
     "  if (is_published(block)) return MUTANT ? free_.push_front(block) : free_.push_back(block);"),
    ("preemptions_unbounded", "sched/scheduler_plan.cc",
     "  const bool to_the_end = sequence.num_preemptions >= kMaxPreemptions;",
     "  const bool to_the_end = !MUTANT && sequence.num_preemptions >= kMaxPreemptions;"),
    ("first_gives_way", "sched/scheduler_plan.cc",
     "    Sequence& victim = *running_.back();",
     "    Sequence& victim = MUTANT ? sequence : *running_.back();"),
    ("swap_in_from_the_wrong_block", "sched/scheduler_swap.cc",
     "{.source = found.swapped, .destination = block}",
     "{.source = (found.swapped + (MUTANT ? 1 : 0)) % options_.num_swap_blocks, .destination = block}"),
    ("swap_in_before_swap_out", "sched/plan_writer.cc",
     "  plan_.block_ops.push_back(\n",
     "  plan_.block_ops.insert(MUTANT && kind == BlockOp::Kind::kSwapIn ? plan_.block_ops.begin() : plan_.block_ops.end(),\n"),
    ("tier_block_not_pinned",
     ("sched/scheduler_swap.cc",
      "      swap_pool_->share(found.swapped);\n    }\n  }\n}\n\n/// Appends",
      "      if (!MUTANT) swap_pool_->share(found.swapped);\n    }\n  }\n}\n\n/// Appends"),
     ("sched/scheduler_swap.cc",
      "sequence, index);\n    swap_pool_->release(found.swapped);",
      "sequence, index);\n    if (!MUTANT) swap_pool_->release(found.swapped);")),
    ("eviction_not_copied", "sched/scheduler_swap.cc",
     "for (const kv::BlockCopy& move : pool_.moved()) write_op(",
     "for (const kv::BlockCopy& move : pool_.moved()) if (!MUTANT) write_op("),
    ("swapped_block_taken_while_shared", "sched/scheduler_swap.cc",
     "  if (num_taken > swap_pool_->num_free()) return false;",
     "  if (num_taken > swap_pool_->num_free() + (MUTANT ? 1 : 0)) return false;"),
    ("swapped_lost_on_cancel", "sched/scheduler.cc",
     "  sequence.swapped.clear();",
     "  if (MUTANT && sequence.swapped.size() > 0) swap_pool_->share(sequence.swapped.block(0));\n  sequence.swapped.clear();"),
    ("last_block_not_swapped", "sched/scheduler_swap.cc",
     "    write_op(BlockOp::Kind::kSwapOut, {",
     "    if (!MUTANT || i < named) write_op(BlockOp::Kind::kSwapOut, {"),
    ("swapped_is_recomputed", "sched/scheduler_swap.cc",
     "  sequence.swapped.clear();\n",
     "  if (MUTANT) sequence.num_computed = 0, sequence.table.clear();\n  sequence.swapped.clear();\n"),
    ("flush_drops_the_tail", "kv/block_pool.cc",
     "    if (!is_published(block)) break;\n    const BlockId kept",
     "    if (!is_published(block)) break;\n    if (MUTANT && moved_.size() > 1) moved_.pop_back();\n    const BlockId kept"),
    ("placeholder_from_the_wrong_row", "sched/testing/fake_model.cc",
     "  if (token != kPlaceholderToken) return token;",
     "  if (token != kPlaceholderToken) return token;\n"
     "  if (MUTANT && !rows_.front().tokens.empty()) return rows_.front().tokens.back();"),
    ("placeholder_behind_the_last_token", "sched/sequence.h",
     "num_pending > 0 && num_planned() == max_tokens;",
     "!MUTANT && num_pending > 0 && num_planned() == max_tokens;"),
    ("stopped_row_freed_in_flight", "sched/scheduler.cc",
     "  if (is_in_flight(sequence)) {",
     "  if (!MUTANT && is_in_flight(sequence)) {"),
    ("cancelled_row_freed_in_flight", "sched/scheduler.cc",
     "SequenceState::kLeaving && !is_in_flight(*sequence)",
     "SequenceState::kLeaving && (MUTANT || !is_in_flight(*sequence))"),
    ("preempted_in_flight",
     ("sched/scheduler_plan.cc", "    if (is_in_flight(victim)) {", "    if (!MUTANT && is_in_flight(victim)) {"),
     ("sched/scheduler_plan.cc",
      "  QUIRE_CHECK(victim.state == SequenceState::kRunning && victim.num_pending == 0);",
      "  QUIRE_CHECK(MUTANT || (victim.state == SequenceState::kRunning && victim.num_pending == 0));")),
    ("rejected_draft_taken", "sched/scheduler.cc",
     "    if (i > 0 && sequence.drafts[i - 1] != event.token) break;",
     "    if (!MUTANT && i > 0 && sequence.drafts[i - 1] != event.token) break;"),
    ("rejected_draft_stays_computed", "sched/scheduler.cc",
     "  sequence.num_computed = sequence.num_tokens() - 1;",
     "  if (!MUTANT) sequence.num_computed = sequence.num_tokens() - 1;"),
    ("rejected_draft_published", "sched/scheduler.cc",
     "  publish_full(sequence, sequence.num_computed);",
     "  publish_full(sequence, sequence.num_computed);\n"
     "  if (MUTANT && options_.enable_prefix_caching) {\n"
     "    const auto i = sequence.num_computed / pool_.block_tokens();\n"
     "    extend_hashes(sequence, sequence.num_tokens() / pool_.block_tokens());\n"
     "    if (i < static_cast<int32_t>(sequence.hashes.size()) && i < sequence.table.size()) publish_in(pool_, sequence.table.block(i), sequence, i);\n"
     "  }"),
    ("rejected_draft_keeps_its_block", "sched/scheduler.cc",
     "  sequence.table.truncate(",
     "  if (!MUTANT) sequence.table.truncate("),
    ("draft_behind_a_placeholder", "sched/scheduler_plan.cc",
     "  if (sequence.num_drafts == 0 || sequence.num_pending > 0) return 0;",
     "  if (sequence.num_drafts == 0 || (!MUTANT && sequence.num_pending > 0)) return 0;"),
]


def main() -> int:
    source, target = map(pathlib.Path, sys.argv[1:])
    texts = {}
    for folder in ("kv", "sched", "sched/testing", "sched/sim"):
        for path in (source / folder).iterdir():
            if path.suffix in (".h", ".cc"):
                texts[path.relative_to(source).as_posix()] = path.read_text()
    for number, (name, *edits) in enumerate(MUTANTS, 1):
        for file, right, wrong in [edits] if isinstance(edits[0], str) else edits:
            if texts[file].count(right) != 1:
                print(f"sched_mutants.py: {name}: its line occurs {texts[file].count(right)} times in {file}", file=sys.stderr)
                return 1
            texts[file] = texts[file].replace(right, wrong.replace("MUTANT", f"::quire::mutant_is({number})"))
    for file, text in texts.items():
        path = target / "quire" / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text('#include "mutants.h"\n' + text)
    names = ", ".join(f'"{name}"' for name, *_ in MUTANTS)
    (target / "mutants.h").write_text(
        "#pragma once\nnamespace quire {\ninline int active_mutant = 0;  // 0: none\n"
        "inline bool mutant_is(int number) { return active_mutant == number; }\n"
        f"inline constexpr const char* kMutants[] = {{{names}}};\n}}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
