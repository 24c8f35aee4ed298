#include "quire/bench/load/request_body.h"

#include <array>
#include <string_view>
#include <utility>

#include <boost/json.hpp>

namespace quire::bench {
namespace {

namespace json = boost::json;

constexpr std::array<std::string_view, 64> kWords = {
    "time",     "year",  "people",  "way",    "day",    "man",      "thing",  "woman",
    "life",     "child", "world",   "school", "state",  "family",   "group",  "country",
    "hand",     "part",  "place",   "case",   "week",   "company",  "system", "program",
    "question", "work",  "number",  "night",  "point",  "home",     "water",  "room",
    "mother",   "area",  "money",   "story",  "fact",   "month",    "lot",    "right",
    "study",    "book",  "eye",     "job",    "word",   "business", "side",   "kind",
    "head",     "house", "service", "friend", "father", "power",    "hour",   "game",
    "line",     "end",   "member",  "law",    "car",    "city",     "name",   "team"};

std::string words(const std::vector<int32_t>& tokens) {
  std::string out;
  for (const int32_t token : tokens) {
    if (!out.empty()) out += ' ';
    out += kWords[static_cast<size_t>(token) % kWords.size()];
  }
  return out;
}

}  // namespace

std::string request_body(const WorkloadRequest& request, const BodyOptions& options) {
  json::object body;
  body["model"] = options.model;
  if (options.chat) {
    // An array by name: compilers differ on what one element in braces is.
    body["messages"] =
        json::array{json::object{{"role", "user"}, {"content", words(request.prompt)}}};
  } else if (options.text) {
    body["prompt"] = words(request.prompt);
  } else {
    body["prompt"] = json::array(request.prompt.begin(), request.prompt.end());
  }
  body["max_tokens"] = request.output_len;
  body["temperature"] = options.temperature;
  body["stream"] = true;
  body["stream_options"] = {{"include_usage", true}};
  if (options.ignore_eos) body["ignore_eos"] = true;
  return json::serialize(body);
}

}  // namespace quire::bench
