#include "quire/bench/lengths.h"

#include <algorithm>
#include <fstream>
#include <sstream>

#include <fmt/format.h>
#include <boost/json.hpp>

#include "quire/base/error.h"

namespace quire::bench {
namespace {

namespace json = boost::json;

constexpr int64_t kLongest = 1 << 24;

int32_t length_of(const json::object& line, const char* field, const std::string& where) {
  const json::value* value = line.if_contains(field);
  const int64_t* length = value == nullptr ? nullptr : value->if_int64();
  if (length == nullptr || *length < 1 || *length > kLongest) {
    throw LoadError(where, field, "a number of tokens, 1 or more",
                    value == nullptr ? "nothing" : json::serialize(*value));
  }
  return static_cast<int32_t>(*length);
}

}  // namespace

std::vector<LengthPair> parse_lengths(std::string_view text, const std::string& where) {
  std::vector<LengthPair> pairs;
  for (int64_t number = 1; !text.empty(); ++number) {
    const size_t length = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, length);
    text.remove_prefix(std::min(length + 1, text.size()));
    if (line.find_first_not_of(" \t\r") == std::string_view::npos) continue;
    const std::string here = fmt::format("{}:{}", where, number);
    boost::system::error_code error;
    const json::value value = json::parse({line.data(), line.size()}, error);
    if (error || !value.is_object()) throw LoadError(here, "not a JSON object");
    pairs.push_back({length_of(value.get_object(), "input_len", here),
                     length_of(value.get_object(), "output_len", here)});
  }
  if (pairs.empty()) throw LoadError(where, "holds no lengths");
  return pairs;
}

std::vector<LengthPair> read_lengths(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw LoadError(path, "cannot be read");
  std::ostringstream text;
  text << file.rdbuf();
  return parse_lengths(text.str(), path);
}

}  // namespace quire::bench
