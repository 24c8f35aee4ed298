#include "quire/plan/svg/chart.h"

#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/format.h>

namespace quire::plan::svg {
namespace {

constexpr std::string_view kGrid = "#dddddd";
constexpr std::string_view kInk = "#222";

double place(const Axis& axis, double value) {
  const double clamped = std::clamp(value, axis.low, axis.high);
  if (axis.log) return std::log(clamped / axis.low) / std::log(axis.high / axis.low);
  return (clamped - axis.low) / (axis.high - axis.low);
}

}  // namespace

Axis log_axis(std::string label, double low, double high, std::string (*text_of)(double)) {
  Axis axis{.label = std::move(label), .log = true, .ticks = {}};
  const auto first = static_cast<int>(std::floor(std::log10(low)));
  const auto last = std::max(first + 1, static_cast<int>(std::ceil(std::log10(high))));
  axis.low = std::pow(10.0, first);
  axis.high = std::pow(10.0, last);
  for (int power = first; power <= last; ++power) {
    const double value = std::pow(10.0, power);
    axis.ticks.emplace_back(value, text_of(value));
  }
  return axis;
}

Axis linear_axis(std::string label, double high, std::string (*text_of)(double)) {
  Axis axis{.label = std::move(label), .ticks = {}};
  const double rough = std::max(high, 1e-12) / 6;
  const double power = std::pow(10.0, std::floor(std::log10(rough)));
  double step = 10 * power;
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (factor * power >= rough) {
      step = factor * power;
      break;
    }
  }
  const double count = std::ceil(high / step * (1 - 1e-9));
  axis.high = std::max(1.0, count) * step;
  for (double i = 0; i <= count; ++i) axis.ticks.emplace_back(i * step, text_of(i * step));
  return axis;
}

Axis doubling_axis(std::string label, const std::vector<double>& values) {
  Axis axis{.label = std::move(label), .log = true, .ticks = {}};
  axis.low = values.front();
  axis.high = std::max(values.back(), 2 * values.front());
  for (const double value : values) axis.ticks.emplace_back(value, fmt::format("{:.0f}", value));
  return axis;
}

std::string escaped(std::string_view text) {
  std::string result;
  for (const char c : text) {
    switch (c) {
      case '<':
        result += "&lt;";
        break;
      case '>':
        result += "&gt;";
        break;
      case '&':
        result += "&amp;";
        break;
      case '"':
        result += "&quot;";
        break;
      default:
        result += c;
    }
  }
  return result;
}

std::string_view color(size_t index) {
  constexpr std::array<std::string_view, 12> kColors = {"#2563a8", "#d1651b", "#2d8f4e", "#b3302f",
                                                        "#7551a8", "#8a6242", "#c65aa0", "#5f6b73",
                                                        "#a19a16", "#1a9aa8", "#1d3f6e", "#e0a93b"};
  return kColors[index % kColors.size()];
}

Page::Page(double width, double height, std::string_view title)
    : width_(width), height_(height), title_(escaped(title)) {
  rect({0, 0, width, height}, "#ffffff");
  text(24, 34, title, 20);
}

void Page::text(double x, double y, std::string_view text, double size, std::string_view anchor,
                std::string_view fill) {
  body_ += fmt::format(
      "<text x=\"{:.1f}\" y=\"{:.1f}\" font-size=\"{:.0f}\" text-anchor=\"{}\" "
      "fill=\"{}\">{}</text>\n",
      x, y, size, anchor, fill, escaped(text));
}

void Page::rect(const Box& box, std::string_view fill, std::string_view more) {
  body_ += fmt::format(
      "<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" fill=\"{}\" {}/>\n",
      box.left, box.top, std::max(0.0, box.width), std::max(0.0, box.height), fill, more);
}

void Page::line(double x1, double y1, double x2, double y2, std::string_view stroke, double width,
                std::string_view dash) {
  body_ += fmt::format(
      "<line x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\" stroke=\"{}\" "
      "stroke-width=\"{:.1f}\" stroke-dasharray=\"{}\"/>\n",
      x1, y1, x2, y2, stroke, width, dash.empty() ? "none" : dash);
}

std::string Page::finish() const {
  return fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0:.0f} {1:.0f}\" "
      "width=\"{0:.0f}\" height=\"{1:.0f}\" "
      "font-family=\"DejaVu Sans, Helvetica, Arial, sans-serif\" role=\"img\">\n"
      "<title>{2}</title>\n{3}</svg>\n",
      width_, height_, title_, body_);
}

Chart::Chart(Page& page, const Box& box, Axis x, Axis y)
    : page_(page), box_(box), x_(std::move(x)), y_(std::move(y)) {
  draw_axes();
}

double Chart::x(double value) const {
  return box_.left + place(x_, value) * box_.width;
}

double Chart::y(double value) const {
  return box_.bottom() - place(y_, value) * box_.height;
}

void Chart::draw_axes() {
  for (const auto& [value, text] : x_.ticks) {
    page_.line(x(value), box_.top, x(value), box_.bottom(), kGrid);
    page_.text(x(value), box_.bottom() + 20, text, 13, "middle");
  }
  for (const auto& [value, text] : y_.ticks) {
    page_.line(box_.left, y(value), box_.right(), y(value), kGrid);
    page_.text(box_.left - 8, y(value) + 5, text, 13, "end");
  }
  page_.line(box_.left, box_.bottom(), box_.right(), box_.bottom(), kInk, 1.5);
  page_.line(box_.left, box_.top, box_.left, box_.bottom(), kInk, 1.5);
  page_.text(box_.left + box_.width / 2, box_.bottom() + 44, x_.label, 15, "middle");
  page_.text(box_.left - 60, box_.top - 14, y_.label, 15);
}

void Chart::polyline(const std::vector<std::pair<double, double>>& points, std::string_view stroke,
                     double width, std::string_view dash, std::string_view data) {
  std::string path;
  for (const auto& [px, py] : points) path += fmt::format("{:.1f},{:.1f} ", x(px), y(py));
  page_.raw(
      fmt::format("<polyline points=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"{:.1f}\" "
                  "stroke-dasharray=\"{}\" {}/>\n",
                  path, stroke, width, dash.empty() ? "none" : dash, data));
}

void Chart::band(const std::vector<std::pair<double, double>>& low,
                 const std::vector<std::pair<double, double>>& high, std::string_view fill,
                 std::string_view data) {
  std::string path;
  for (const auto& [px, py] : low) path += fmt::format("{:.1f},{:.1f} ", x(px), y(py));
  for (auto point = high.rbegin(); point != high.rend(); ++point) {
    path += fmt::format("{:.1f},{:.1f} ", x(point->first), y(point->second));
  }
  page_.raw(fmt::format("<polygon points=\"{}\" fill=\"{}\" fill-opacity=\"0.25\" {}/>\n", path,
                        fill, data));
}

void Chart::badge(double page_x, double page_y, std::string_view label, std::string_view fill,
                  bool round) {
  page_.rect({page_x - 10, page_y - 10, 20, 20}, fill,
             fmt::format("rx=\"{}\" stroke=\"#fff\"", round ? 10 : 2));
  page_.text(page_x, page_y + 5, label, 13, "middle", "#fff");
}

}  // namespace quire::plan::svg
