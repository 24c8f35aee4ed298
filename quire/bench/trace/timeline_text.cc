#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "quire/bench/trace/timeline.h"

namespace quire::bench {
namespace {

constexpr int32_t kWidestBar = 8;  // longer blocks are told in numbers

/// Characters of UTF-8 text, each one column wide.
size_t columns(std::string_view text) {
  return static_cast<size_t>(std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xc0) != 0x80;
  }));
}

std::string pad(std::string text, size_t width) {
  const size_t have = columns(text);
  if (have < width) text.append(width - have, ' ');
  return text;
}

std::string times(std::string_view mark, int32_t count) {
  std::string out;
  for (int32_t i = 0; i < count; ++i) out += mark;
  return out;
}

/// "A5" computes 5 tokens of A, "A" one (its next token), "A┤" its last.
std::string cell(const Timeline& timeline, const TimelineRow& row) {
  std::string out = timeline.name(row.sequence);
  if (row.num_tokens > 1 || row.num_prompt_tokens > 0) out += fmt::format("{}", row.num_tokens);
  if (row.num_tokens == 0) out = row.started ? "↳" + out : "(" + out + ")";
  if (row.ended) out += "┤";
  return out;
}

struct Grid {
  std::vector<std::string> labels;
  std::vector<std::vector<std::string>> cells;  // [line][step]
};

Grid row_grid(const Timeline& timeline) {
  Grid grid;
  int32_t num_rows = 0;
  size_t longest_queue = 0;
  for (const TimelineStep& step : timeline.steps) {
    for (const TimelineRow& row : step.rows) num_rows = std::max(num_rows, row.row + 1);
    longest_queue = std::max(longest_queue, step.waiting.size());
  }
  for (int32_t i = 0; i < num_rows; ++i) grid.labels.push_back(fmt::format("row {}", i));
  for (size_t i = 0; i < longest_queue; ++i) grid.labels.push_back(i == 0 ? "queue" : "");
  grid.cells.assign(grid.labels.size(), std::vector<std::string>(timeline.steps.size()));
  for (size_t s = 0; s < timeline.steps.size(); ++s) {
    const TimelineStep& step = timeline.steps[s];
    for (int32_t i = 0; i < num_rows; ++i) grid.cells[static_cast<size_t>(i)][s] = "·";
    for (const TimelineRow& row : step.rows) {
      grid.cells[static_cast<size_t>(row.row)][s] = cell(timeline, row);
    }
    for (size_t i = 0; i < step.waiting.size(); ++i) {
      std::string& place = grid.cells[static_cast<size_t>(num_rows) + i][s];
      place = timeline.name(step.waiting[i]);
      if (std::count(step.preempted.begin(), step.preempted.end(), step.waiting[i]) > 0) {
        place.insert(0, "✗");
      }
    }
  }
  return grid;
}

/// Breaks into pieces of as many steps as fit a line.
std::string draw(const Grid& grid, size_t num_steps) {
  constexpr size_t kLine = 100;
  constexpr size_t kLabel = 8;
  size_t width = 3;
  for (const auto& line : grid.cells) {
    for (const std::string& text : line) width = std::max(width, columns(text));
  }
  width += 1;
  const size_t per_line = std::max(size_t{1}, (kLine - kLabel) / width);
  std::string out;
  const auto end_line = [&out] {
    while (out.ends_with(' ')) out.pop_back();
    out += '\n';
  };
  for (size_t first = 0; first < num_steps; first += per_line) {
    const size_t last = std::min(num_steps, first + per_line);
    out += pad("step", kLabel);
    for (size_t s = first; s < last; ++s) out += pad(fmt::format("{}", s + 1), width);
    end_line();
    for (size_t line = 0; line < grid.cells.size(); ++line) {
      out += pad(grid.labels[line], kLabel);
      for (size_t s = first; s < last; ++s) out += pad(grid.cells[line][s], width);
      end_line();
    }
    out += '\n';
  }
  return out;
}

/// "3▕██▓·▏": block 3 has two tokens from earlier steps, one of this step, one free slot.
std::string block_text(const TimelineBlock& block, int32_t block_tokens) {
  std::string mark = block.shared ? "=" : "";
  if (block.copied) mark += "c";
  if (block_tokens > kWidestBar) {
    return fmt::format("{}{}[{}/{}]", block.id, mark, block.num_filled, block_tokens);
  }
  const int32_t old = block.num_filled - block.num_new;
  return fmt::format("{}{}▕{}{}{}▏", block.id, mark, times("█", old), times("▓", block.num_new),
                     times("·", block_tokens - block.num_filled));
}

std::string what_ran(const TimelineRow& row) {
  if (row.num_tokens == 0) return row.started ? "joins the prompt just done" : "not this step";
  std::string out;
  const int32_t rest = row.num_tokens - row.num_prompt_tokens;
  if (row.num_prompt_tokens > 0) out = fmt::format("prompt {}", row.num_prompt_tokens);
  if (rest > 0) {
    out += out.empty() ? "" : ", ";
    out += rest == 1 ? "1 token" : fmt::format("{} tokens again", rest);
  }
  if (row.num_cached > 0) out += fmt::format(", {} cached", row.num_cached);
  return out;
}

std::string step_text(const Timeline& timeline, size_t index) {
  const TimelineStep& step = timeline.steps[index];
  std::string out = fmt::format("step {}: {} tokens, {} of {} blocks free\n", index + 1,
                                step.num_tokens, step.num_free, timeline.options.num_blocks);
  size_t name_width = 0;
  for (const auto& sequence : timeline.sequences()) {
    name_width = std::max(name_width, columns(timeline.name(sequence)));
  }
  for (const TimelineRow& row : step.rows) {
    std::string result = row.sampled ? fmt::format("→ output {}", row.num_output) : "";
    if (row.ended) result += ", the last";
    out += fmt::format("  {}  {} {}", pad(timeline.name(row.sequence), name_width),
                       pad(what_ran(row), 22), pad(result, 20));
    for (const TimelineBlock& block : row.blocks) {
      out += " " + block_text(block, timeline.options.block_tokens);
    }
    while (out.ends_with(' ')) out.pop_back();
    out += '\n';
  }
  for (const sched::BlockOp& op : step.block_ops) {
    if (op.kind == sched::BlockOp::Kind::kCopy) {
      out += fmt::format("  copy block {} to {}\n", op.source, op.destination);
    }
  }
  for (const auto& sequence : step.preempted) {
    out += fmt::format("  {} lost its blocks and waits\n", timeline.name(sequence));
  }
  return out;
}

}  // namespace

std::string timeline_text(const Timeline& timeline) {
  std::string out =
      fmt::format("{} rows, {} blocks of {} tokens, at most {} tokens a step\n\n",
                  timeline.options.max_num_seqs, timeline.options.num_blocks,
                  timeline.options.block_tokens, timeline.options.max_num_batched_tokens);
  out += draw(row_grid(timeline), timeline.steps.size());
  out +=
      "A5: five tokens of A's prompt are computed; A: its next token; ┤ its last; ✗ it lost its "
      "blocks; ↳ it joins\n\nBlock tables (█ a token of an earlier step, ▓ of this one, · free; = "
      "shared, c copied)\n\n";
  for (size_t i = 0; i < timeline.steps.size(); ++i) out += step_text(timeline, i);
  return out;
}

}  // namespace quire::bench
