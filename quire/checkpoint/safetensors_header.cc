#include "quire/checkpoint/safetensors_header.h"

#include <algorithm>
#include <cstddef>
#include <unordered_set>
#include <utility>

#include <fmt/format.h>
#include <boost/json/basic_parser_impl.hpp>

#include "quire/base/error.h"
#include "quire/checkpoint/byte_cursor.h"

namespace quire::checkpoint {
namespace {

namespace json = boost::json;

constexpr size_t kMaxDims = 8;
constexpr size_t kMaxNameBytes = 4096;

/// Receives the parser's events. The header has one shape only: an object of objects, whose arrays
/// hold numbers; `__metadata__` maps strings to strings.
class HeaderHandler {
 public:
  static constexpr size_t max_object_size = static_cast<size_t>(-1);
  static constexpr size_t max_array_size = kMaxDims;
  static constexpr size_t max_key_size = kMaxNameBytes;
  static constexpr size_t max_string_size = static_cast<size_t>(-1);

  explicit HeaderHandler(const std::string& file) : file_(file) {}

  std::vector<SafetensorsEntry> take_entries() { return std::move(entries_); }

  bool on_document_begin(json::error_code&) { return true; }
  bool on_document_end(json::error_code&) { return true; }

  bool on_object_begin(json::error_code&) {
    if (depth_ == 0) {
      depth_ = 1;
      return true;
    }
    if (depth_ != 1 || in_array_) fail(key_, "a value of the format", "an object");
    depth_ = 2;
    in_metadata_ = name_ == "__metadata__";
    fields_.clear();
    if (!in_metadata_) entries_.push_back({name_, {}, {}, {}});
    return true;
  }
  bool on_object_end(size_t, json::error_code&) {
    if (depth_ == 2 && !in_metadata_) {
      for (const char* field : {"dtype", "shape", "data_offsets"}) {
        if (!fields_.contains(field)) fail(field, "a value", "no such key");
      }
      if (entries_.back().data_offsets.size() != 2) {
        fail("data_offsets", "2 numbers", fmt::format("{}", entries_.back().data_offsets.size()));
      }
    }
    --depth_;
    return true;
  }

  bool on_array_begin(json::error_code&) {
    if (depth_ != 2 || in_metadata_ || in_array_ || (key_ != "shape" && key_ != "data_offsets")) {
      fail(key_, "a value of the format", "an array");
    }
    in_array_ = true;
    return true;
  }
  bool on_array_end(size_t, json::error_code&) {
    in_array_ = false;
    return true;
  }

  bool on_key_part(json::string_view part, size_t, json::error_code&) {
    text_.append(part.data(), part.size());
    return true;
  }
  bool on_key(json::string_view part, size_t, json::error_code&) {
    text_.append(part.data(), part.size());
    key_ = std::exchange(text_, {});
    if (depth_ == 1) name_ = key_;
    auto& seen = depth_ == 1 ? names_ : fields_;
    if (!seen.insert(key_).second) fail(key_, "one value", "the key twice");
    if (depth_ == 2 && !in_metadata_ && key_ != "dtype" && key_ != "shape" &&
        key_ != "data_offsets") {
      fail(key_, "dtype, shape or data_offsets", "an unknown key");
    }
    return true;
  }

  bool on_string_part(json::string_view part, size_t, json::error_code&) {
    if (!in_metadata_) text_.append(part.data(), part.size());
    return true;
  }
  bool on_string(json::string_view part, size_t, json::error_code&) {
    if (depth_ == 2 && in_metadata_) return true;
    text_.append(part.data(), part.size());
    const std::string text = std::exchange(text_, {});
    if (depth_ != 2 || in_array_ || key_ != "dtype") {
      fail(key_, "a value of the format", "a string");
    }
    entries_.back().dtype = text;
    return true;
  }

  bool on_number_part(json::string_view, json::error_code&) { return true; }
  bool on_int64(int64_t value, json::string_view, json::error_code&) {
    if (value < 0) fail(key_, "numbers from 0", fmt::format("{}", value));
    return on_number(static_cast<uint64_t>(value));
  }
  bool on_uint64(uint64_t value, json::string_view, json::error_code&) { return on_number(value); }
  bool on_double(double value, json::string_view, json::error_code&) {
    fail(key_, "an integer", fmt::format("{}", value));
  }
  bool on_bool(bool, json::error_code&) { fail(key_, "a value of the format", "a bool"); }
  bool on_null(json::error_code&) { fail(key_, "a value of the format", "null"); }
  bool on_comment_part(json::string_view, json::error_code&) { return true; }
  bool on_comment(json::string_view, json::error_code&) { return true; }

 private:
  bool on_number(uint64_t value) {
    if (!in_array_) fail(key_, "a value of the format", "a number");
    (key_ == "shape" ? entries_.back().shape : entries_.back().data_offsets).push_back(value);
    return true;
  }
  [[noreturn]] void fail(std::string_view key, std::string_view expected,
                         std::string_view found) const {
    const auto field =
        depth_ < 2 ? printable(key) : fmt::format("{}: {}", printable(name_), printable(key));
    throw LoadError(file_, fmt::format("header: {}", field), expected, found);
  }

  const std::string& file_;
  std::vector<SafetensorsEntry> entries_;
  std::unordered_set<std::string> names_;   // keys seen at the top
  std::unordered_set<std::string> fields_;  // keys seen in the current object
  std::string text_;                        // parts of the current string or key
  std::string name_;                        // the current tensor
  std::string key_;
  int depth_ = 0;
  bool in_array_ = false;
  bool in_metadata_ = false;
};

}  // namespace

std::vector<SafetensorsEntry> parse_safetensors_header(std::string_view json,
                                                       const std::string& file) {
  json::parse_options options;
  options.max_depth = 4;
  json::basic_parser<HeaderHandler> parser(options, file);
  json::error_code error;
  const size_t used = parser.write_some(false, json.data(), json.size(), error);
  if (error) {
    throw LoadError(file, "header", "JSON", fmt::format("{} at byte {}", error.message(), used));
  }
  const auto rest = json.substr(used);
  if (rest.find_first_not_of(" \t\r\n") != std::string_view::npos) {
    throw LoadError(file, "header", "one JSON object", fmt::format("more after byte {}", used));
  }
  return parser.handler().take_entries();
}

}  // namespace quire::checkpoint
