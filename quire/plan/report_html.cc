#include <fmt/format.h>
#include <boost/json.hpp>

#include "quire/plan/pictures.h"
#include "quire/plan/svg/chart.h"
#include "quire/plan/units.h"

namespace quire::plan {
namespace {

constexpr std::string_view kStyle =
    "body{font:16px/1.5 'DejaVu Sans',Helvetica,Arial,sans-serif;max-width:1240px;margin:2em auto;"
    "padding:0 1em;color:#222}svg{width:100%;height:auto;border:1px solid #ddd;margin:1em 0}"
    "pre{overflow-x:auto;background:#f6f6f6;padding:1em;font-size:13px;line-height:1.35}"
    "table{border-collapse:collapse}td,th{border:1px solid #ccc;padding:.3em .6em;text-align:left}"
    "td.n{text-align:right}code{background:#f6f6f6}";

/// "</script" must not end the block the figures lie in.
std::string embedded(std::string json) {
  for (size_t at = json.find("</"); at != std::string::npos; at = json.find("</", at + 3)) {
    json.replace(at, 2, "<\\/");
  }
  return json;
}

std::string comparisons(const Plan& plan) {
  std::string rows;
  for (const Comparison& c : plan.comparisons) {
    rows += fmt::format(
        "<tr><td>{}<br><small>{}</small></td><td class=n>{}</td><td class=n>{}</td><td "
        "class=n>{}</td><td>{}</td></tr>\n",
        svg::escaped(c.name), svg::escaped(c.formula), bytes_text(c.textbook),
        bytes_text(static_cast<double>(c.counted)), bytes_text(c.difference()),
        svg::escaped(c.why));
  }
  return "<table><tr><th></th><th>textbook</th><th>counted</th><th>difference</th><th>why</th></"
         "tr>" +
         rows + "</table>\n";
}

std::string settings(const Report& report) {
  if (!report.config) return {};
  std::string rows;
  for (const Setting& s : report.config->settings) {
    rows += fmt::format("<tr><td><code>{}</code></td><td>{}</td><td>{}</td></tr>\n", s.key,
                        svg::escaped(s.value), svg::escaped(s.why));
  }
  return fmt::format("<h2>Settings</h2><pre>{}</pre><table>{}</table>\n",
                     svg::escaped(report.config->command_line(report.model)), rows);
}

}  // namespace

std::string report_html(const Report& report) {
  const std::string title =
      svg::escaped(fmt::format("{} on {}", report.title(), report.plan->options.device.name));
  std::string page = fmt::format(
      "<!doctype html>\n<html lang=en><head><meta charset=utf-8><title>{0}</title>"
      "<style>{1}</style></head><body>\n<h1>{0}</h1>\n",
      title, kStyle);
  if (!report.plan->fits) {
    page += fmt::format("<p><b>Does not fit:</b> {}</p>\n", svg::escaped(report.plan->problem));
  }
  page += "<h2>Memory</h2>\n" + ledger_svg(report) + memory_svg(report);
  page += "<h2>Beside the textbook</h2>\n" + comparisons(*report.plan);
  if (report.forecast) {
    page += "<h2>Speed</h2>\n" + roofline_svg(report) + throughput_svg(report);
  }
  page += settings(report);
  page += fmt::format("<h2>All of it</h2>\n<pre>{}</pre>\n", svg::escaped(report_text(report)));
  page += fmt::format("<script type=\"application/json\" id=\"plan\">{}</script>\n",
                      embedded(boost::json::serialize(report_json(report))));
  return page + "</body></html>\n";
}

}  // namespace quire::plan
