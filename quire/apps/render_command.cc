#include "quire/apps/render_command.h"

#include <boost/json.hpp>
#include <istream>
#include <iterator>
#include <ostream>
#include <string>

#include "quire/llm/json_value.h"

namespace quire::apps {
namespace {

constexpr std::size_t kMaxJsonDepth = 64;

Result<std::string> render_request(std::string_view json, const text::ChatTemplate& chat_template,
                                   const text::Value::Dict& defaults) {
  boost::json::parse_options options;
  options.max_depth = kMaxJsonDepth;
  boost::json::error_code code;
  const boost::json::value request =
      boost::json::parse(boost::json::string_view(json.data(), json.size()), code, {}, options);
  if (code) return invalid("the request is no JSON: " + code.message());
  Result<text::Value::Dict> variables = llm::chat_variables(request, defaults);
  if (!variables) return variables.error();
  return chat_template.render(*variables);
}

}  // namespace

int run_render(std::istream& in, std::ostream& out, std::ostream& errors,
               const text::ChatTemplate& chat_template, const text::Value::Dict& defaults) {
  const std::string json{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  Result<std::string> prompt = render_request(json, chat_template, defaults);
  if (!prompt) {
    errors << prompt.error().message << '\n';
    return 1;
  }
  out << *prompt << std::flush;
  return 0;
}

int run_render_jsonl(std::istream& in, std::ostream& out, const text::ChatTemplate& chat_template,
                     const text::Value::Dict& defaults) {
  for (std::string line; std::getline(in, line);) {
    if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
    Result<std::string> prompt = render_request(line, chat_template, defaults);
    boost::json::object answer;
    if (prompt) {
      answer["text"] = *prompt;
    } else {
      answer["error"] = prompt.error().message;
    }
    out << boost::json::serialize(answer) << '\n' << std::flush;
  }
  return 0;
}

}  // namespace quire::apps
