// Chart: axes, grid and marks of one diagram, written as SVG.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace quire::plan::svg {

/// A rectangle of the picture, in pixels.
struct Box {
  double left = 0, top = 0, width = 0, height = 0;
  double right() const { return left + width; }
  double bottom() const { return top + height; }
};

struct Axis {
  std::string label;  // with its unit
  double low = 0;
  double high = 1;
  bool log = false;
  /// Where lines of the grid are, with what stands beside them.
  std::vector<std::pair<double, std::string>> ticks;
};

/// Powers of ten from at or below `low` to at or above `high`; each is named by `unit_of`.
Axis log_axis(std::string label, double low, double high, std::string (*text_of)(double));
/// About six round steps from 0 to at or above `high`.
Axis linear_axis(std::string label, double high, std::string (*text_of)(double));
/// The given values in equal steps' place: for batches 1, 2, 4, ...
Axis doubling_axis(std::string label, const std::vector<double>& values);

/// "<", "&" and quotes made harmless.
std::string escaped(std::string_view text);

/// The i-th of a row of well-told-apart colours.
std::string_view color(size_t index);

/// A page of SVG on which charts and texts are put.
class Page {
 public:
  Page(double width, double height, std::string_view title);

  void text(double x, double y, std::string_view text, double size = 15,
            std::string_view anchor = "start", std::string_view fill = "#222");
  void rect(const Box& box, std::string_view fill, std::string_view more = "");
  void line(double x1, double y1, double x2, double y2, std::string_view stroke, double width = 1,
            std::string_view dash = "");
  /// Any element, as it is.
  void raw(std::string_view element) { body_ += element; }
  std::string finish() const;

 private:
  double width_, height_;
  std::string title_;
  std::string body_;
};

/// A pair of axes on a page. Points outside are drawn at the edge.
class Chart {
 public:
  Chart(Page& page, const Box& box, Axis x, Axis y);

  double x(double value) const;
  double y(double value) const;
  /// `data` are attributes that carry the exact numbers: data-name="...".
  void polyline(const std::vector<std::pair<double, double>>& points, std::string_view stroke,
                double width = 2, std::string_view dash = "", std::string_view data = "");
  /// The area between two lines over the same x.
  void band(const std::vector<std::pair<double, double>>& low,
            const std::vector<std::pair<double, double>>& high, std::string_view fill,
            std::string_view data = "");
  /// A small sign with a text inside, round or square, at a place of the page.
  void badge(double page_x, double page_y, std::string_view label, std::string_view fill,
             bool round);
  const Box& box() const { return box_; }

 private:
  void draw_axes();

  Page& page_;
  Box box_;
  Axis x_;
  Axis y_;
};

}  // namespace quire::plan::svg
