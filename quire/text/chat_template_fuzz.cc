// Fuzz target: any bytes as a template over a small chat must render, fail to load or end in an
// Error.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "quire/base/error.h"
#include "quire/text/chat_template.h"

namespace {

using quire::text::Value;

Value::Dict chat() {
  const Value call =
      Value::Dict{{"function", Value::Dict{{"name", "f"}, {"arguments", Value::Dict{{"x", 0.5}}}}}};
  return {
      {"messages",
       Value::List{
           Value::Dict{{"role", "system"}, {"content", " Ünï\n"}},
           Value::Dict{{"role", "user"},
                       {"content", Value::List{Value::Dict{{"type", "text"}, {"text", "hi"}}}}},
           Value::Dict{
               {"role", "assistant"}, {"content", Value()}, {"tool_calls", Value::List{call}}}}},
      {"tools", Value()},
      {"add_generation_prompt", true},
      {"n", int64_t{7}},
      {"bos_token", "<s>"}};
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const Value::Dict variables = chat();
  const quire::text::RenderBudget budget = {.max_operations = 20'000, .max_output_bytes = 1 << 16};
  try {
    const quire::text::ChatTemplate chat_template(
        std::string_view(reinterpret_cast<const char*>(data), size), "fuzz");
    static_cast<void>(chat_template.render(variables, budget));
  } catch (const quire::LoadError&) {
  }
  return 0;
}
