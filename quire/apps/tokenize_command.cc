#include "quire/apps/tokenize_command.h"

#include <boost/json.hpp>
#include <istream>
#include <limits>
#include <ostream>
#include <string>
#include <vector>

#include "quire/base/result.h"
#include "quire/text/detokenizer.h"

namespace quire::apps {
namespace {

namespace json = boost::json;

Result<bool> read_flag(const json::object& request, std::string_view name, bool fallback) {
  const json::value* value = request.if_contains(name);
  if (value == nullptr) return fallback;
  if (!value->is_bool()) return invalid(std::string(name) + " must be true or false");
  return value->get_bool();
}

Result<json::value> encode(const json::object& request, const text::Tokenizer& tokenizer) {
  const json::string* text = request.at("text").if_string();
  if (text == nullptr) return invalid("text must be a string");
  const auto add_special = read_flag(request, "add_special_tokens", true);
  if (!add_special) return add_special.error();
  const auto parse_special = read_flag(request, "parse_special", true);
  if (!parse_special) return parse_special.error();
  const auto ids = tokenizer.encode(std::string_view(*text), *add_special, *parse_special);
  return json::value(json::array(ids.begin(), ids.end()));
}

Result<json::value> decode(const json::object& request, const text::Tokenizer& tokenizer) {
  const json::array* list = request.at("ids").if_array();
  if (list == nullptr) return invalid("ids must be an array");
  const auto skip_special = read_flag(request, "skip_special_tokens", false);
  if (!skip_special) return skip_special.error();
  std::vector<int32_t> ids;
  for (const json::value& value : *list) {
    const int64_t* id = value.if_int64();
    if (id == nullptr || *id < 0 || *id > std::numeric_limits<int32_t>::max()) {
      return invalid("ids must be token ids");
    }
    ids.push_back(static_cast<int32_t>(*id));
  }
  return json::value(text::replace_invalid_utf8(tokenizer.decode(ids, *skip_special)));
}

Result<json::value> answer(const std::string& line, const text::Tokenizer& tokenizer) {
  json::error_code error;
  const json::value value = json::parse(line, error);
  if (error) return invalid("not valid JSON: " + error.message());
  const json::object* request = value.if_object();
  if (request == nullptr) return invalid("not an object");
  if (request->contains("text")) return encode(*request, tokenizer);
  if (request->contains("ids")) return decode(*request, tokenizer);
  return invalid("neither text nor ids");
}

}  // namespace

int run_tokenize(std::istream& in, std::ostream& out, const text::Tokenizer& tokenizer) {
  int exit_code = 0;
  for (std::string line; std::getline(in, line);) {
    const auto result = answer(line, tokenizer);
    if (result) {
      out << json::serialize(*result) << '\n';
    } else {
      out << json::serialize(json::object{{"error", result.error().message}}) << '\n';
      exit_code = 1;
    }
  }
  out.flush();
  return exit_code;
}

}  // namespace quire::apps
