#include "quire/text/chat_template/json_dump.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "quire/text/chat_template/filters.h"
#include "quire/text/chat_template/operators.h"
#include "quire/text/chat_template/sequence.h"
#include "quire/text/chat_template/text_form.h"
#include "quire/text/chat_template/unicode.h"

namespace quire::text::jinja {
namespace {

class JsonWriter {
 public:
  JsonWriter(Runtime& runtime, const JsonOptions& options) : runtime_(runtime), options_(options) {}

  void write(const Datum& value);
  std::string take() { return std::move(out_); }

 private:
  void write_string(std::string_view text);
  void write_escaped(char32_t c);
  void write_list(const std::vector<Datum>& items);
  void write_dict(const DictObject& dict);
  void write_key(const Datum& key);
  void break_line(size_t level);
  void separate(bool first) {
    if (!first) out_ += options_.item_separator;
    break_line(level_);
  }

  Runtime& runtime_;
  const JsonOptions& options_;
  std::string out_;
  size_t level_ = 0;
};

std::string json_float(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "Infinity" : "-Infinity";
  return float_repr(value);
}

void JsonWriter::break_line(size_t level) {
  if (!options_.indent) return;
  runtime_.meter().require(out_.size() + options_.indent->size() * level);
  runtime_.meter().step_bytes(options_.indent->size() * level);
  out_ += '\n';
  for (size_t i = 0; i < level; ++i) out_ += *options_.indent;
}

void JsonWriter::write_escaped(char32_t c) {
  if (c >= 0x10000) {
    const uint32_t offset = static_cast<uint32_t>(c) - 0x10000;
    out_ += fmt::format("\\u{:04x}\\u{:04x}", 0xD800 + (offset >> 10), 0xDC00 + (offset & 0x3FF));
  } else {
    out_ += fmt::format("\\u{:04x}", static_cast<uint32_t>(c));
  }
}

void JsonWriter::write_string(std::string_view text) {
  runtime_.meter().step_bytes(text.size());
  runtime_.meter().require(out_.size() + text.size());
  out_ += '"';
  for (size_t position = 0; position < text.size();) {
    const size_t begin = position;
    const char32_t c = decode_utf8(text, position);
    switch (c) {
      case '"':
        out_ += "\\\"";
        break;
      case '\\':
        out_ += "\\\\";
        break;
      case '\n':
        out_ += "\\n";
        break;
      case '\r':
        out_ += "\\r";
        break;
      case '\t':
        out_ += "\\t";
        break;
      case '\b':
        out_ += "\\b";
        break;
      case '\f':
        out_ += "\\f";
        break;
      default:
        if (c < 0x20 || (options_.ensure_ascii && c > 0x7E)) {
          write_escaped(c);
        } else {
          out_ += text.substr(begin, position - begin);
        }
    }
  }
  out_ += '"';
}

void JsonWriter::write_list(const std::vector<Datum>& items) {
  if (items.empty()) {
    out_ += "[]";
    return;
  }
  out_ += '[';
  ++level_;
  for (size_t i = 0; i < items.size(); ++i) {
    separate(i == 0);
    write(items[i]);
  }
  --level_;
  break_line(level_);
  out_ += ']';
}

void JsonWriter::write_key(const Datum& key) {
  switch (key.type()) {
    case Type::kString:
      write_string(text_of(key));
      break;
    case Type::kNone:
      out_ += "\"null\"";
      break;
    case Type::kBool:
      out_ += key.as_bool() ? "\"true\"" : "\"false\"";
      break;
    case Type::kInt:
      out_ += fmt::format("\"{}\"", key.as_int());
      break;
    case Type::kFloat:
      out_ += '"' + json_float(key.as_float()) + '"';
      break;
    default:
      throw RenderError(
          fmt::format("keys must be str, int, float, bool or None, not {}", type_name(key)));
  }
}

void JsonWriter::write_dict(const DictObject& dict) {
  if (dict.entries.empty()) {
    out_ += "{}";
    return;
  }
  std::vector<const std::pair<Datum, Datum>*> entries;
  entries.reserve(dict.entries.size());
  for (const auto& entry : dict.entries) entries.push_back(&entry);
  if (options_.sort_keys) {
    std::stable_sort(entries.begin(), entries.end(), [&](const auto* a, const auto* b) {
      return is_less(runtime_, a->first, b->first);
    });
  }
  out_ += '{';
  ++level_;
  bool first = true;
  for (const auto* entry : entries) {
    separate(first);
    first = false;
    write_key(entry->first);
    out_ += options_.key_separator;
    write(entry->second);
  }
  --level_;
  break_line(level_);
  out_ += '}';
}

void JsonWriter::write(const Datum& value) {
  runtime_.meter().step();
  runtime_.meter().require(out_.size());
  switch (value.type()) {
    case Type::kNone:
      out_ += "null";
      break;
    case Type::kBool:
      out_ += value.as_bool() ? "true" : "false";
      break;
    case Type::kInt:
      out_ += std::to_string(value.as_int());
      break;
    case Type::kFloat:
      out_ += json_float(value.as_float());
      break;
    case Type::kString:
      write_string(text_of(value));
      break;
    case Type::kList:
    case Type::kTuple: {
      const DepthGuard guard(runtime_.meter());
      write_list(value.as<ListObject>().items);
      break;
    }
    case Type::kDict: {
      const DepthGuard guard(runtime_.meter());
      write_dict(value.as<DictObject>());
      break;
    }
    default:
      throw RenderError(
          fmt::format("Object of type {} is not JSON serializable", type_name(value)));
  }
}

}  // namespace

JsonOptions json_options(Runtime& runtime, const Datum* ensure_ascii, const Datum* indent,
                         const Datum* separators, const Datum* sort_keys) {
  constexpr int64_t kMaxIndent = 1024;
  JsonOptions options;
  options.ensure_ascii = truth_or(ensure_ascii, false);
  options.sort_keys = truth_or(sort_keys, false);
  if (indent != nullptr && !indent->is_none()) {
    if (indent->is_string()) {
      options.indent = std::string(text_of(*indent));
    } else {
      const int64_t width = integer_or(indent, 0);
      if (width > kMaxIndent) throw RenderError("tojson: the indent is too wide");
      options.indent = std::string(static_cast<size_t>(std::max<int64_t>(width, 0)), ' ');
    }
    options.item_separator = ",";
  }
  if (separators != nullptr && !separators->is_none()) {
    const std::vector<Datum> pair = to_vector(runtime, *separators);
    if (pair.size() != 2 || !pair[0].is_string() || !pair[1].is_string()) {
      throw RenderError("tojson: separators are two strings");
    }
    options.item_separator = text_of(pair[0]);
    options.key_separator = text_of(pair[1]);
  }
  return options;
}

std::string dump_json(Runtime& runtime, const Datum& value, const JsonOptions& options) {
  JsonWriter writer(runtime, options);
  writer.write(value);
  return writer.take();
}

}  // namespace quire::text::jinja
