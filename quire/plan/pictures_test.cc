// The pictures' numbers are the JSON's.
#include "quire/plan/pictures.h"

#include <gtest/gtest.h>

#include <map>
#include <regex>

#include <boost/json.hpp>

#include "quire/plan/testing/planned.h"

namespace quire::plan {
namespace {

namespace json = boost::json;

using Attributes = std::map<std::string, std::string>;

/// The data-* attributes of every element that has `key`.
std::vector<Attributes> elements_with(const std::string& svg, const std::string& key) {
  static const std::regex element("<[a-z]+ [^>]*>");
  static const std::regex attribute("data-([a-z-]+)=\"([^\"]*)\"");
  std::vector<Attributes> found;
  for (std::sregex_iterator each(svg.begin(), svg.end(), element), end; each != end; ++each) {
    const std::string text = each->str();
    Attributes attributes;
    for (std::sregex_iterator a(text.begin(), text.end(), attribute); a != end; ++a) {
      attributes[(*a)[1]] = (*a)[2];
    }
    if (attributes.contains(key)) found.push_back(std::move(attributes));
  }
  return found;
}

class Pictures : public ::testing::Test {
 protected:
  Pictures() : plan_(testing::plan_on(testing::round_device(), "Llama-3.2-1B", "q8_0", 2)) {
    report_.plan = &plan_;
    report_.model = "Llama <&> \"1B\"";
    report_.prompt_len = 512;
    report_.output_len = 128;
    report_.forecast = forecast(plan_, 512, 128);
    report_.config = tune(plan_, report_.model, report_.forecast, 640);
    json_ = report_json(report_);
  }

  Plan plan_;
  Report report_;
  json::object json_;
};

TEST_F(Pictures, RooflineMarksAreTheClassesOfTheJson) {
  const std::string svg = roofline_svg(report_);
  int checked = 0;
  for (const Attributes& mark : elements_with(svg, "intensity")) {
    const json::array& classes = json_.at("forecast").at(mark.at("phase")).at("classes").as_array();
    for (const json::value& each : classes) {
      if (each.at("name").as_string() != mark.at("name")) continue;
      EXPECT_DOUBLE_EQ(each.at("intensity").as_double(), std::stod(mark.at("intensity")));
      EXPECT_DOUBLE_EQ(each.at("ceiling_ops_per_second").as_double(),
                       std::stod(mark.at("ceiling")));
      ++checked;
    }
  }
  EXPECT_GE(checked, 6);
  EXPECT_NE(svg.find("op/B"), std::string::npos);
}

TEST_F(Pictures, ThroughputIsTheForecastOfTheJson) {
  const auto marks = elements_with(throughput_svg(report_), "fast-tokens-per-second");
  const json::array& batches = json_.at("forecast").at("batches").as_array();
  ASSERT_EQ(marks.size(), batches.size());
  for (size_t i = 0; i < marks.size(); ++i) {
    EXPECT_EQ(std::to_string(batches[i].at("batch").as_int64()), marks[i].at("batch"));
    EXPECT_DOUBLE_EQ(batches[i].at("tokens_per_second").as_array()[1].as_double(),
                     std::stod(marks[i].at("fast-tokens-per-second")));
  }
}

TEST_F(Pictures, TheLedgersBarsAddUpToTheTotal) {
  const json::array& ranks = json_.at("memory").at("ranks").as_array();
  int64_t bars = 0;
  for (const Attributes& bar : elements_with(ledger_svg(report_), "bytes")) {
    bars += std::stoll(bar.at("bytes"));
  }
  int64_t total = 0;
  for (const json::value& rank : ranks) total += rank.at("total_bytes").as_int64();
  EXPECT_EQ(bars, total);
}

TEST_F(Pictures, TheJsonsLinesAddUp) {
  for (const json::value& rank : json_.at("memory").at("ranks").as_array()) {
    int64_t sum = 0;
    for (const json::value& line : rank.at("lines").as_array()) sum += line.at("bytes").as_int64();
    EXPECT_EQ(sum, rank.at("fixed_bytes").as_int64());
    EXPECT_EQ(sum + rank.at("kv_cache_bytes").as_int64(), rank.at("total_bytes").as_int64());
  }
}

TEST_F(Pictures, ThePageNeedsNothingElseAndCarriesTheFigures) {
  const std::string page = report_html(report_);
  for (const char* outside : {"src=", "href=", "url(", "@import"}) {
    EXPECT_EQ(page.find(outside), std::string::npos) << outside;
  }
  const std::string open = "<script type=\"application/json\" id=\"plan\">";
  const size_t begin = page.find(open) + open.size();
  EXPECT_EQ(page.substr(0, begin).find("Llama <&>"), std::string::npos) << "escaped";
  EXPECT_EQ(page.substr(begin, page.find("</script>") - begin), json::serialize(json_));
}

TEST_F(Pictures, APlanThatDoesNotFitHasPicturesToo) {
  Device device = testing::round_device();
  device.memory_bytes = int64_t{1} << 30;
  const Plan plan = testing::plan_on(device, "Llama-3.1-8B", "bf16");
  ASSERT_FALSE(plan.fits);
  Report report;
  report.plan = &plan;
  report.model = "m";
  EXPECT_NE(ledger_svg(report).find("does not fit"), std::string::npos);
  EXPECT_FALSE(memory_svg(report).empty());
  EXPECT_NE(report_text(report).find("DOES NOT FIT"), std::string::npos);
  EXPECT_NE(report_html(report).find("Does not fit"), std::string::npos);
}

}  // namespace
}  // namespace quire::plan
