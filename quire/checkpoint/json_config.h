// JsonConfig: a JSON object read as a configuration: typed, ranged access with errors that name the
// key.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <boost/json/fwd.hpp>

namespace quire::checkpoint {

/// Accessors return nothing for a key that is absent or null and throw LoadError naming file and
/// key (with the objects around it: "rope_scaling.factor") for a value of the wrong type or range.
class JsonConfig {
 public:
  /// `where` is the file named in errors. Nesting beyond 32 levels is an error.
  JsonConfig(std::string_view json, std::string_view where);
  static JsonConfig read_file(const std::string& path);

  const std::string& where() const { return where_; }
  /// The key as errors name it.
  std::string full_key(std::string_view key) const { return prefix_ + std::string(key); }
  /// True for a key whose value is not null.
  bool has(std::string_view key) const;

  std::optional<int64_t> integer(std::string_view key, int64_t low, int64_t high) const;
  int64_t required_integer(std::string_view key, int64_t low, int64_t high) const;
  /// One integer or a list of them.
  std::optional<std::vector<int64_t>> integers(std::string_view key, int64_t low,
                                               int64_t high) const;
  std::optional<double> number(std::string_view key, double low, double high) const;
  double required_number(std::string_view key, double low, double high) const;
  std::optional<bool> boolean(std::string_view key) const;
  std::optional<std::string> string(std::string_view key) const;
  std::optional<std::vector<std::string>> strings(std::string_view key) const;
  std::optional<JsonConfig> object(std::string_view key) const;
  std::map<std::string, std::string> required_string_map(std::string_view key) const;

 private:
  JsonConfig(std::shared_ptr<const boost::json::object> object, std::string where,
             std::string prefix);

  const boost::json::value* find(std::string_view key) const;
  int64_t to_integer(const boost::json::value& value, std::string_view key, int64_t low,
                     int64_t high) const;
  [[noreturn]] void fail(std::string_view key, std::string_view expected,
                         std::string_view found) const;
  [[noreturn]] void fail_on(std::string_view key, std::string_view expected,
                            const boost::json::value& found) const;

  std::shared_ptr<const boost::json::object> object_;
  std::string where_;
  std::string prefix_;
};

}  // namespace quire::checkpoint
