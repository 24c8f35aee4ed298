#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "quire/base/check.h"
#include "quire/plan/pictures.h"
#include "quire/plan/svg/chart.h"
#include "quire/plan/units.h"

namespace quire::plan {
namespace {

using backend::ActType;
using svg::Box;
using svg::Chart;
using svg::Page;

constexpr double kWidth = 1200;

std::string rate_tick(double value) {
  return rate_text(value, "op/s");
}
std::string plain_tick(double value) {
  return fmt::format("{:g}", value);
}

/// A place on the roof, and the classes that lie there.
struct Spot {
  double intensity = 0;
  double ceiling = 0;
  std::string names;
  double share = 0;  // of the step's time
  std::string data;
};

/// Classes that lie at nearly the same place are one spot.
std::vector<Spot> spots_of(const StepTime& step, std::string_view phase) {
  std::vector<Spot> spots;
  for (const LineClass& each : classes_of(step.lines)) {
    const LineTime& sum = each.sum;
    if (sum.operations == 0 || sum.bytes == 0) continue;
    const auto near = [&](const Spot& spot) {
      return std::abs(std::log(spot.intensity / sum.intensity)) < 0.2 &&
             std::abs(std::log(spot.ceiling / sum.ceiling)) < 0.2;
    };
    auto found = std::find_if(spots.begin(), spots.end(), near);
    if (found == spots.end()) {
      spots.push_back(
          {.intensity = sum.intensity, .ceiling = sum.ceiling, .names = {}, .data = {}});
      found = spots.end() - 1;
      found->data = fmt::format(
          "data-phase=\"{}\" data-name=\"{}\" data-intensity=\"{}\" data-ceiling=\"{}\"", phase,
          each.name, sum.intensity, sum.ceiling);
    }
    found->names += (found->names.empty() ? "" : ", ") + each.name;
    found->share += sum.seconds / step.compute_seconds;
  }
  return spots;
}

/// Names in lines of at most `width` letters.
std::vector<std::string> wrapped(const std::string& text, size_t width) {
  std::vector<std::string> lines = {""};
  size_t begin = 0;
  while (begin < text.size()) {
    size_t end = text.find(' ', begin);
    if (end == std::string::npos) end = text.size();
    const std::string word = text.substr(begin, end - begin);
    if (!lines.back().empty() && lines.back().size() + 1 + word.size() > width) lines.push_back("");
    lines.back() += (lines.back().empty() ? "" : " ") + word;
    begin = end + 1;
  }
  return lines;
}

class RooflinePicture {
 public:
  explicit RooflinePicture(const Report& report)
      : report_(report), device_(report.plan->options.device) {}

  std::string draw() {
    const auto decode = spots_of(report_.forecast->decode, "decode");
    const auto prefill = spots_of(report_.forecast->prefill, "prefill");
    double low = 0.1;
    double high = 2000;
    double floor = device_.peak_fp32;
    for (const auto* spots : {&decode, &prefill}) {
      for (const Spot& spot : *spots) {
        low = std::min(low, spot.intensity);
        high = std::max(high, spot.intensity * 1.5);
        floor = std::min(floor, spot.ceiling);
      }
    }
    const double peak = std::max({device_.peak_fp32, device_.peak_bf16, device_.peak_int8});
    const double rows = static_cast<double>(decode.size() + prefill.size());
    Page page(kWidth, std::max(770.0, 200 + 50 * rows),
              fmt::format("{}: roofline of {} (batch 1, context {}; prompt of {})", report_.title(),
                          device_.name, report_.forecast->batches.front().context,
                          report_.forecast->prefill.tokens));
    Chart chart(
        page, {110, 90, 680, 580},
        svg::log_axis("arithmetic intensity: operations a byte (op/B)", low, high, plain_tick),
        svg::log_axis("op/s", floor * 0.7, peak * 1.2, rate_tick));
    draw_roofs(page, chart, low, high);
    int number = 1;
    double y = 100;
    page.text(815, y, "decode, one sequence", 16, "start", svg::color(0));
    legend(page, chart, decode, svg::color(0), true, number, y);
    y += 36;
    page.text(815, y, "prefill", 16, "start", svg::color(3));
    legend(page, chart, prefill, svg::color(3), false, number, y);
    return page.finish();
  }

 private:
  void draw_roofs(Page& page, Chart& chart, double low, double high) {
    const double peak = std::max({device_.peak_fp32, device_.peak_bf16, device_.peak_int8});
    double share = 1.0 / 6;  // of the peak: where the level's name stands, each lower than the last
    for (const MemoryLevel& level : device_.levels) {
      if (level.bytes_per_second <= 0) continue;
      const bool last_level = &level == &device_.levels.back();
      const double ridge = peak / level.bytes_per_second;
      const double begin = low / 3;
      chart.polyline({{begin, begin * level.bytes_per_second}, {ridge, peak}}, "#444", 2.5, "",
                     fmt::format("data-level=\"{}\" data-bytes-per-second=\"{}\"",
                                 svg::escaped(level.name), level.bytes_per_second));
      const double at = std::max(low, ridge * share);
      share /= 2.2;
      const double x = chart.x(at) + (last_level ? 10 : -8);
      const double y = chart.y(at * level.bytes_per_second);
      page.text(x, y + (last_level ? 14 : -2),
                fmt::format("{} {}", level.name, rate_text(level.bytes_per_second, "B/s")), 14,
                last_level ? "start" : "end", "#444");
      labels_.push_back({last_level ? x : x - 110, y - 18, 130, 34});
    }
    const std::pair<const char*, ActType> kinds[] = {
        {"fp32", ActType::kF32}, {"bf16", ActType::kBF16}, {"int8", ActType::kI8}};
    double last = 0;
    std::string ridges;
    for (const auto& [name, act] : kinds) {
      const double top = device_.peak(act);
      if (top <= 0) continue;
      const double ridge = device_.ridge(act);
      chart.polyline({{ridge, top}, {high * 10, top}}, "#444", 2.5, "7 4",
                     fmt::format("data-peak=\"{}\" data-ops-per-second=\"{}\"", name, top));
      ridges += fmt::format("{} {} {:.0f}", ridges.empty() ? "" : ",", name, ridge);
      const double y = chart.y(top);
      if (std::abs(y - last) < 16) continue;  // two that are the same
      page.text(chart.box().right() - 4, y - 7, fmt::format("{} {}", name, rate_text(top, "op/s")),
                14, "end", "#444");
      last = y;
    }
    page.text(
        110, chart.box().bottom() + 74,
        fmt::format("Ridge points, where arithmetic and memory take as long:{} op/B.", ridges), 14);
  }

  void legend(Page& page, Chart& chart, const std::vector<Spot>& spots, std::string_view fill,
              bool round, int& number, double& y) {
    for (const Spot& spot : spots) {
      mark(page, chart, spot, fill, round, number);
      y += 24;
      page.text(838, y, fmt::format("{}", number), 14, "end", fill);
      const auto names = wrapped(spot.names, 40);
      for (size_t i = 0; i < names.size(); ++i) {
        if (i > 0) y += 17;
        page.text(848, y, names[i], 14);
      }
      y += 17;
      page.text(848, y,
                fmt::format("{:.2f} op/B, at most {}, {:.1f} % of the time", spot.intensity,
                            rate_text(spot.ceiling, "op/s"), 100 * spot.share),
                13, "start", "#5f6b73");
      ++number;
    }
  }

  /// A dot where the spot is, and its number beside the roof: above it for decode and under a flat
  /// roof's top, below for the rest of prefill; further off where something else stands.
  void mark(Page& page, Chart& chart, const Spot& spot, std::string_view fill, bool round,
            int number) {
    const double x = chart.x(spot.intensity);
    const double y = chart.y(spot.ceiling);
    const bool flat = spot.intensity * device_.memory_bandwidth() > 1.05 * spot.ceiling;
    const double side = round ? -1 : 1;
    double at_x = x + (flat ? -8 : side * 22);
    double at_y = y + (flat ? -24 : side * 14);
    const auto taken = [&](const std::pair<double, double>& other) {
      return std::hypot(other.first - at_x, other.second - at_y) < 23;
    };
    const auto covers = [&](const Box& label) {
      return at_x > label.left && at_x < label.right() && at_y > label.top && at_y < label.bottom();
    };
    while (std::any_of(marks_.begin(), marks_.end(), taken) ||
           std::any_of(labels_.begin(), labels_.end(), covers)) {
      at_x += flat ? -14 : side * 12;
      at_y += flat ? -4 : side * 12;
    }
    marks_.emplace_back(at_x, at_y);
    page.line(x, y, at_x, at_y, fill, 1.5);
    page.raw(fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"5\" fill=\"{}\" {}/>\n", x, y,
                         fill, spot.data));
    chart.badge(at_x, at_y, fmt::format("{}", number), fill, round);
  }

  const Report& report_;
  const Device& device_;
  std::vector<std::pair<double, double>> marks_;
  std::vector<Box> labels_;
};

}  // namespace

std::string roofline_svg(const Report& report) {
  QUIRE_CHECK(report.forecast.has_value());
  return RooflinePicture(report).draw();
}

std::string throughput_svg(const Report& report) {
  QUIRE_CHECK(report.forecast.has_value());
  const Forecast& forecast = *report.forecast;
  std::vector<double> batches;
  std::vector<std::pair<double, double>> slow_rate, fast_rate, fast_itl, slow_itl;
  double most_rate = 0;
  double most_itl = 0;
  double last_fit = 0;
  for (const BatchPoint& point : forecast.batches) {
    const auto batch = static_cast<double>(point.batch);
    batches.push_back(batch);
    slow_rate.emplace_back(batch, point.slow_tokens_per_s());
    fast_rate.emplace_back(batch, point.fast_tokens_per_s());
    fast_itl.emplace_back(batch, point.itl.fast * 1e3);
    slow_itl.emplace_back(batch, point.itl.slow * 1e3);
    most_rate = std::max(most_rate, point.fast_tokens_per_s());
    most_itl = std::max(most_itl, point.itl.slow * 1e3);
    if (point.fits) last_fit = batch;
  }
  Page page(kWidth, 600,
            fmt::format("{} on {}: decode, {} tokens of context", report.title(),
                        report.plan->options.device.name, forecast.batches.front().context));
  Chart rate(page, {110, 110, 460, 390}, svg::doubling_axis("sequences in the batch", batches),
             svg::linear_axis("tokens/s", most_rate, plain_tick));
  Chart itl(page, {700, 110, 460, 390}, svg::doubling_axis("sequences in the batch", batches),
            svg::linear_axis("ms between tokens", most_itl, plain_tick));
  rate.band(slow_rate, fast_rate, svg::color(0));
  itl.band(fast_itl, slow_itl, svg::color(1));
  for (size_t i = 0; i < batches.size(); ++i) {
    const BatchPoint& point = forecast.batches[i];
    const std::string data = fmt::format(
        "data-batch=\"{}\" data-slow-tokens-per-second=\"{}\" data-fast-tokens-per-second=\"{}\"",
        point.batch, point.slow_tokens_per_s(), point.fast_tokens_per_s());
    rate.polyline({slow_rate[i], fast_rate[i]}, svg::color(0), 4, "", data);
    itl.polyline({fast_itl[i], slow_itl[i]}, svg::color(1), 4, "",
                 fmt::format("data-batch=\"{}\" data-fast-seconds=\"{}\" data-slow-seconds=\"{}\"",
                             point.batch, point.itl.fast, point.itl.slow));
  }
  rate.polyline(slow_rate, svg::color(0), 2);
  rate.polyline(fast_rate, svg::color(0), 2);
  itl.polyline(slow_itl, svg::color(1), 2);
  itl.polyline(fast_itl, svg::color(1), 2);
  if (last_fit > 0 && last_fit < batches.back()) {
    for (Chart* chart : {&rate, &itl}) {
      const double x = chart->x(last_fit);
      page.line(x, chart->box().top, x, chart->box().bottom(), "#b3302f", 2, "6 4");
      page.text(x + 6, chart->box().top + 16, "the KV cache holds no more", 13, "start", "#b3302f");
    }
  }
  page.text(24, 580,
            fmt::format("Ranges: {:.0f} to {:.0f} % of the bandwidth, {:.0f} to {:.0f} % of the "
                        "arithmetic. First token of a prompt of {}: {} to {}.",
                        100 * report.plan->options.device.bandwidth.low,
                        100 * report.plan->options.device.bandwidth.high,
                        100 * report.plan->options.device.compute.low,
                        100 * report.plan->options.device.compute.high, forecast.prompt_len,
                        time_text(forecast.ttft.fast), time_text(forecast.ttft.slow)),
            14);
  return page.finish();
}

}  // namespace quire::plan
