#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "quire/bench/trace/timeline.h"

namespace quire::bench {
namespace {

// Lengths in SVG units.
constexpr double kLeft = 92;
constexpr double kStep = 44;
constexpr double kLane = 34;
constexpr double kBlock = 18;
constexpr double kGap = 3;

/// Okabe and Ito's colours, told apart by colour-blind readers too.
constexpr std::array<std::string_view, 7> kColours = {"#0072b2", "#e69f00", "#009e73", "#cc79a7",
                                                      "#56b4e9", "#d55e00", "#8a8a00"};

std::string escape(std::string_view text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

class Drawing {
 public:
  explicit Drawing(const Timeline& timeline);
  std::string draw();

 private:
  double x(size_t step) const { return kLeft + kStep * static_cast<double>(step); }
  std::string_view colour(sched::SequenceId sequence) const {
    return kColours[colour_.at(sequence) % kColours.size()];
  }
  void rect(double left, double top, double width, double height, std::string_view fill,
            std::string_view more = "");
  void text(double left, double top, std::string_view content, std::string_view style);
  void heading(double top, std::string_view content);
  void steps_axis(double top);
  double lanes(double top);
  double queue(double top);
  double memory(double top);
  void block_cell(size_t step, double top, kv::BlockId block);
  void legend(double top);

  const Timeline& timeline_;
  std::map<sched::SequenceId, size_t> colour_;
  std::vector<kv::BlockId> blocks_;  // those ever used, ascending
  int32_t num_rows_ = 0;
  size_t longest_queue_ = 0;
  std::string body_;
};

Drawing::Drawing(const Timeline& timeline) : timeline_(timeline) {
  std::set<kv::BlockId> used;
  for (const TimelineStep& step : timeline.steps) {
    longest_queue_ = std::max(longest_queue_, step.waiting.size());
    for (const TimelineRow& row : step.rows) {
      num_rows_ = std::max(num_rows_, row.row + 1);
      for (const TimelineBlock& block : row.blocks) used.insert(block.id);
    }
  }
  blocks_.assign(used.begin(), used.end());
  for (const auto& sequence : timeline.sequences()) colour_.emplace(sequence, colour_.size());
}

void Drawing::rect(double left, double top, double width, double height, std::string_view fill,
                   std::string_view more) {
  body_ += fmt::format(
      "<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" fill=\"{}\" {}/>\n", left,
      top, width, height, fill, more);
}

void Drawing::text(double left, double top, std::string_view content, std::string_view style) {
  body_ += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" class=\"{}\">{}</text>\n", left, top, style,
                       escape(content));
}

void Drawing::heading(double top, std::string_view content) {
  text(14, top, content, "heading");
}

void Drawing::steps_axis(double top) {
  text(14, top, "step", "label");
  for (size_t s = 0; s < timeline_.steps.size(); ++s) {
    text(x(s) + kStep / 2, top, fmt::format("{}", s + 1), "axis");
  }
}

/// A box a step: full colour where a prompt is computed, lighter for one token.
double Drawing::lanes(double top) {
  for (int32_t lane = 0; lane < num_rows_; ++lane) {
    const double y = top + kLane * lane;
    text(14, y + 21, fmt::format("row {}", lane), "label");
    rect(kLeft, y + kGap, kStep * static_cast<double>(timeline_.steps.size()), kLane - 2 * kGap,
         "#f4f4f4", "rx=\"4\"");
  }
  for (size_t s = 0; s < timeline_.steps.size(); ++s) {
    for (const TimelineRow& row : timeline_.steps[s].rows) {
      const double y = top + kLane * row.row + kGap;
      const bool prompt = row.num_prompt_tokens > 0;
      rect(x(s) + 1, y, kStep - 2, kLane - 2 * kGap, colour(row.sequence),
           fmt::format("rx=\"4\" fill-opacity=\"{}\"", prompt               ? 1.0
                                                       : row.num_tokens > 0 ? 0.35
                                                                            : 0.1));
      std::string label = timeline_.name(row.sequence);
      if (row.num_tokens > 1 || prompt) label += fmt::format(" +{}", row.num_tokens);
      text(x(s) + kStep / 2, y + 18, label, prompt ? "cell bright" : "cell");
      if (row.ended) rect(x(s) + kStep - 4, y, 3, kLane - 2 * kGap, "#222222");
    }
  }
  return top + kLane * num_rows_;
}

double Drawing::queue(double top) {
  if (longest_queue_ == 0) return top;
  text(14, top + 15, "queue", "label");
  for (size_t s = 0; s < timeline_.steps.size(); ++s) {
    const TimelineStep& step = timeline_.steps[s];
    for (size_t i = 0; i < step.waiting.size(); ++i) {
      const bool lost =
          std::count(step.preempted.begin(), step.preempted.end(), step.waiting[i]) > 0;
      text(x(s) + kStep / 2, top + 15 + 15 * static_cast<double>(i),
           (lost ? "✗ " : "") + timeline_.name(step.waiting[i]), "axis");
    }
  }
  return top + 15 * static_cast<double>(longest_queue_) + 8;
}

/// Side by side, the holders of a block, each with what it has filled of it.
void Drawing::block_cell(size_t step, double top, kv::BlockId block) {
  std::vector<const TimelineRow*> holders;
  std::vector<const TimelineBlock*> entries;
  for (const TimelineRow& row : timeline_.steps[step].rows) {
    for (const TimelineBlock& entry : row.blocks) {
      if (entry.id != block) continue;
      holders.push_back(&row);
      entries.push_back(&entry);
    }
  }
  if (holders.empty()) return;
  const double slot = (kStep - 4) / timeline_.options.block_tokens;
  const double height = (kBlock - 4) / static_cast<double>(holders.size());
  for (size_t i = 0; i < holders.size(); ++i) {
    const double y = top + 2 + height * static_cast<double>(i);
    const TimelineBlock& entry = *entries[i];
    const double old = slot * (entry.num_filled - entry.num_new);
    if (old > 0)
      rect(x(step) + 2, y, old, height, colour(holders[i]->sequence), "fill-opacity=\"0.45\"");
    if (entry.num_new > 0)
      rect(x(step) + 2 + old, y, slot * entry.num_new, height, colour(holders[i]->sequence));
  }
  const bool copied = entries.front()->copied;
  rect(x(step) + 2, top + 2, kStep - 4, kBlock - 4, "none",
       fmt::format("stroke=\"{}\" stroke-width=\"{}\"",
                   copied ? "#222222" : colour(holders.front()->sequence), copied ? 2 : 1));
}

double Drawing::memory(double top) {
  for (size_t i = 0; i < blocks_.size(); ++i) {
    const double y = top + kBlock * static_cast<double>(i);
    text(14, y + 13, fmt::format("block {}", blocks_[i]), "label");
    rect(kLeft, y + 1, kStep * static_cast<double>(timeline_.steps.size()), kBlock - 2, "#f8f8f8");
    for (size_t s = 0; s < timeline_.steps.size(); ++s) block_cell(s, y, blocks_[i]);
  }
  return top + kBlock * static_cast<double>(blocks_.size());
}

void Drawing::legend(double top) {
  double left = 14;
  const auto sample = [&](std::string_view opacity, std::string_view what, double width) {
    rect(left, top - 10, 14, 12, "#555555", fmt::format("rx=\"2\" fill-opacity=\"{}\"", opacity));
    text(left + 19, top, what, "note");
    left += width;
  };
  sample("1", "computed in this step", 160);
  sample("0.4", "in the cache from earlier steps", 210);
  text(14, top + 18,
       "empty frame: slots reserved, not yet filled · black bar: a request's last step", "note");
}

std::string Drawing::draw() {
  heading(26, "Who runs in each step");
  steps_axis(48);
  double y = lanes(56);
  y = queue(y + 4) + 34;
  heading(y, fmt::format("The KV cache: blocks of {} tokens", timeline_.options.block_tokens));
  y = memory(y + 12) + 26;
  legend(y);
  const double width =
      std::max(kLeft + kStep * static_cast<double>(timeline_.steps.size()) + 16, 560.0);
  return fmt::format(
             "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0:.0f} {1:.0f}\" "
             "width=\"{0:.0f}\" height=\"{1:.0f}\" font-family=\"system-ui, sans-serif\">\n"
             "<style>.heading{{font-size:15px;font-weight:600;fill:#222}}"
             ".label{{font-size:12px;fill:#555}}"
             ".axis{{font-size:12px;fill:#555;text-anchor:middle}}"
             ".cell{{font-size:12px;fill:#222;text-anchor:middle}}"
             ".bright{{fill:#fff;font-weight:600}}.note{{font-size:12px;fill:#555}}</style>\n"
             "<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n",
             width, y + 32) +
         body_ + "</svg>\n";
}

}  // namespace

std::string timeline_svg(const Timeline& timeline) {
  return Drawing(timeline).draw();
}

}  // namespace quire::bench
