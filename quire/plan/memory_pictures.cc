#include <algorithm>
#include <cmath>
#include <iterator>

#include <fmt/format.h>

#include "quire/plan/pictures.h"
#include "quire/plan/svg/chart.h"
#include "quire/plan/units.h"

namespace quire::plan {
namespace {

using svg::Axis;
using svg::Box;
using svg::Chart;
using svg::Page;

constexpr double kGib = 1024.0 * 1024.0 * 1024.0;
constexpr double kWidth = 1200;

std::string plain_number(double value) {
  return value >= 1000 ? count_text(static_cast<int64_t>(value)) : fmt::format("{:g}", value);
}

/// One piece of a bar.
struct Piece {
  std::string name;
  int64_t bytes = 0;
  bool estimate = false;
};

/// What a rank takes beside the KV cache; lines of less than a fiftieth of it are put together.
std::vector<Piece> pieces_of(const RankLedger& rank) {
  std::vector<Piece> pieces;
  Piece rest{.name = "other", .bytes = 0, .estimate = false};
  for (const LedgerLine& line : rank.lines) {
    if (line.bytes * 50 < rank.fixed_bytes()) {
      rest.bytes += line.bytes;
    } else {
      pieces.push_back({line.name, line.bytes, line.estimate});
    }
  }
  if (rest.bytes > 0) pieces.push_back(rest);
  return pieces;
}

size_t color_of(std::vector<std::string>& names, const std::string& name) {
  const auto found = std::find(names.begin(), names.end(), name);
  if (found != names.end()) return static_cast<size_t>(found - names.begin());
  names.push_back(name);
  return names.size() - 1;
}

/// Draws bars of pieces, one below the other, and remembers their colours.
class Bars {
 public:
  explicit Bars(Page& page) : page_(page) {}

  /// Along the x axis of `chart`, which counts in `unit` bytes.
  void draw(const Chart& chart, double top, double height, const std::vector<Piece>& pieces,
            double unit, std::string_view data) {
    int64_t before = 0;
    for (const Piece& piece : pieces) {
      const double left = chart.x(static_cast<double>(before) / unit);
      before += piece.bytes;
      const double right = chart.x(static_cast<double>(before) / unit);
      page_.rect({left, top, right - left, height}, fill(piece.name),
                 fmt::format("data-name=\"{}\" data-{}=\"{}\" stroke=\"#fff\" {}",
                             svg::escaped(piece.name), data, piece.bytes,
                             piece.estimate ? "fill-opacity=\"0.6\"" : ""));
      if (right - left > 84) {
        page_.text((left + right) / 2, top + height / 2 + 5, piece.name, 13, "middle", "#fff");
      }
    }
  }

  std::string_view fill(const std::string& name) {
    return name == "KV cache" ? "#44525c" : svg::color(color_of(names_, name));
  }

 private:
  Page& page_;
  std::vector<std::string> names_;
};

}  // namespace

std::string ledger_svg(const Report& report) {
  const Plan& plan = *report.plan;
  const RankLedger& fullest = plan.fullest();
  auto pieces = pieces_of(fullest);
  if (plan.fits) pieces.push_back({"KV cache", plan.pool_bytes(fullest), false});
  const size_t shown = std::min<size_t>(plan.ranks.size(), 16);
  const double step = shown > 4 ? 34 : 60;
  const double bars = static_cast<double>(shown) * step;
  const double rows = std::ceil(static_cast<double>(pieces.size()) / 3);
  Page page(kWidth, 90 + bars + 80 + 90 + 80 + 26 * rows + 40,
            fmt::format("{} on {}: memory{}", report.title(), plan.options.device.name,
                        shown == 1 ? "" : " of each rank"));
  int64_t most = plan.options.memory_bytes;
  for (const RankLedger& rank : plan.ranks) most = std::max(most, plan.total_bytes(rank));
  const auto rank_axis = [](size_t count) {
    return Axis{.label = {}, .low = 0, .high = static_cast<double>(count), .ticks = {}};
  };
  const Box box{130, 90, kWidth - 200, bars};
  Chart chart(page, box,
              svg::linear_axis("GiB", static_cast<double>(most) / kGib * 1.02, plain_number),
              rank_axis(shown));
  Bars drawn(page);
  for (size_t i = 0; i < shown; ++i) {
    const RankLedger& rank = plan.ranks[i];
    const double top = box.top + static_cast<double>(i) * step;
    page.text(box.left - 10, top + step / 2 + 5, fmt::format("rank {}", rank.share.rank), 14,
              "end");
    auto each = pieces_of(rank);
    if (plan.fits) each.push_back({"KV cache", plan.pool_bytes(rank), false});
    drawn.draw(chart, top + step * 0.1, step * 0.8, each, kGib, "bytes");
  }
  if (plan.options.memory_bytes > 0) {
    const double x = chart.x(static_cast<double>(plan.options.memory_bytes) / kGib);
    page.line(x, box.top - 8, x, box.bottom(), "#b3302f", 2, "6 4");
    page.text(x, box.top - 14,
              fmt::format("memory {}", gib_text(static_cast<double>(plan.options.memory_bytes))),
              13, "end", "#b3302f");
  }
  // The same without the KV cache, wide enough to see.
  const Box below{130, box.bottom() + 80, kWidth - 200, 60};
  const bool small = fullest.fixed_bytes() < int64_t{2} << 30;
  const double unit = small ? kGib / 1024 : kGib;
  Chart zoomed(page, below,
               svg::linear_axis(fmt::format("{}, rank {} without the KV cache",
                                            small ? "MiB" : "GiB", fullest.share.rank),
                                static_cast<double>(fullest.fixed_bytes()) / unit, plain_number),
               rank_axis(1));
  drawn.draw(zoomed, below.top + 6, 48, pieces_of(fullest), unit, "zoomed-bytes");
  const double first = below.bottom() + 84;
  for (size_t i = 0; i < pieces.size(); ++i) {
    const double x = 40 + 385 * static_cast<double>(i % 3);
    const double y = first + 26 * static_cast<double>(i / 3);
    page.rect({x, y - 13, 16, 16}, drawn.fill(pieces[i].name),
              pieces[i].estimate ? "fill-opacity=\"0.6\"" : "");
    page.text(
        x + 24, y,
        fmt::format("{}: {}{}", pieces[i].name, bytes_text(static_cast<double>(pieces[i].bytes)),
                    pieces[i].estimate ? " (estimate)" : ""),
        14);
  }
  page.text(40, first + 26 * rows,
            fmt::format("total of rank {}: {}{}", fullest.share.rank,
                        bytes_text(static_cast<double>(plan.total_bytes(fullest))),
                        plan.fits ? "" : " without a KV cache: it does not fit"),
            14);
  return page.finish();
}

std::string memory_svg(const Report& report) {
  const Plan& plan = *report.plan;
  const int64_t longest = plan.model.config.max_position;
  const auto fixed = static_cast<double>(plan.fullest().fixed_bytes());
  const auto memory = static_cast<double>(plan.options.memory_bytes);
  Page page(kWidth, 640,
            fmt::format("{} on {}: memory of the fullest rank against context", report.title(),
                        plan.options.device.name));
  const double wanted = std::max(memory * 1.15, fixed * 1.5);
  Axis tokens_axis =
      svg::linear_axis("tokens of each sequence", static_cast<double>(longest), plain_number);
  tokens_axis.high = static_cast<double>(longest);
  std::erase_if(tokens_axis.ticks, [&](const auto& tick) { return tick.first > tokens_axis.high; });
  const Axis memory_axis = svg::linear_axis("GiB", wanted / kGib, plain_number);
  const double top = memory_axis.high * kGib;
  Chart chart(page, {110, 90, 850, 470}, tokens_axis, memory_axis);
  const double ceiling = chart.box().top;
  const std::vector<int64_t> counts = {1, 4, 16, 64, 256};
  for (size_t i = 0; i < counts.size(); ++i) {
    std::vector<std::pair<double, double>> points;
    for (int step = 0; step <= 256; ++step) {
      const int64_t tokens = longest * step / 256;
      const double bytes =
          fixed + static_cast<double>(counts[i] * (tokens > 0 ? plan.sequence_bytes(tokens) : 0));
      if (bytes / kGib > top / kGib) {
        const double before = points.empty() ? 0 : points.back().first;
        const double last = points.empty() ? fixed / kGib : points.back().second;
        const double share = (top / kGib - last) / (bytes / kGib - last);
        points.emplace_back(before + share * (static_cast<double>(tokens) - before), top / kGib);
        break;
      }
      points.emplace_back(static_cast<double>(tokens), bytes / kGib);
    }
    chart.polyline(points, svg::color(i), 3, "",
                   fmt::format("data-name=\"{} sequences\" data-token-bytes=\"{}\"", counts[i],
                               plan.fullest().kv_token_bytes));
    const double y = ceiling + 40 + 28 * static_cast<double>(i);
    page.line(985, y - 5, 1015, y - 5, svg::color(i), 4);
    page.text(1025, y, fmt::format("{} sequence{}", counts[i], counts[i] == 1 ? "" : "s"), 15);
  }
  page.line(chart.box().left, chart.y(fixed / kGib), chart.box().right(), chart.y(fixed / kGib),
            "#5f6b73", 2);
  page.line(985, ceiling + 245, 1015, ceiling + 245, "#5f6b73", 4);
  page.text(1025, ceiling + 250, "weights, activations,", 15);
  page.text(1025, ceiling + 270, fmt::format("the rest: {}", bytes_text(fixed)), 15);
  if (memory > 0) {
    const auto budget = static_cast<double>(plan.budget_bytes());
    page.line(chart.box().left, chart.y(memory / kGib), chart.box().right(), chart.y(memory / kGib),
              "#b3302f", 2);
    page.line(chart.box().left, chart.y(budget / kGib), chart.box().right(), chart.y(budget / kGib),
              "#b3302f", 2, "6 4");
    const double right = chart.box().right() - 8;
    page.text(right, chart.y(memory / kGib) - 7, fmt::format("memory {}", gib_text(memory)), 14,
              "end", "#b3302f");
    page.text(right, chart.y(budget / kGib) + 18, fmt::format("to be used {}", gib_text(budget)),
              14, "end", "#b3302f");
  }
  page.text(985, ceiling + 20, "KV cache of", 15);
  page.text(
      985, ceiling + 200,
      fmt::format("{} a token", bytes_text(static_cast<double>(plan.fullest().kv_token_bytes))),
      14);
  return page.finish();
}

}  // namespace quire::plan
