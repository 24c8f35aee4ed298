// JsonFields: typed reading of a request's JSON object; the first value of a wrong type or range is
// the request's error.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <boost/json.hpp>

#include "quire/base/result.h"

namespace quire::server {

/// null counts as absent everywhere.
class JsonFields {
 public:
  /// `prefix` is put before field names in errors ("stream_options.").
  explicit JsonFields(const boost::json::object& object, std::string prefix = "");

  /// The value, or null when it is absent or JSON null.
  const boost::json::value* find(std::string_view name) const;
  std::optional<bool> boolean(std::string_view name);
  std::optional<int64_t> integer(std::string_view name, int64_t min, int64_t max);
  std::optional<double> number(std::string_view name, double min, double max);
  std::optional<std::string> string(std::string_view name);
  /// A string counts as a list of one.
  std::vector<std::string> strings(std::string_view name, size_t max_count);
  std::vector<int32_t> ids(std::string_view name);

  /// Records an error; only the first is kept.
  void fail(std::string_view name, std::string_view expected);
  const std::optional<Error>& error() const { return error_; }

 private:
  const boost::json::object& object_;
  std::string prefix_;
  std::optional<Error> error_;
};

/// The longest beginning of `text` that has at most `max_bytes` and cuts no code point.
std::string_view cut_utf8(std::string_view text, size_t max_bytes);

/// `value` as an id, or nothing when it is not an integer that fits.
std::optional<int32_t> as_id(const boost::json::value& value);

}  // namespace quire::server
