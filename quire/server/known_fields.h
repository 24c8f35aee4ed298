// known_fields: which request fields there are: read, known but not built yet (an error that names
// them, unless neutral), or unknown.
#pragma once

#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <boost/json.hpp>

#include "quire/base/result.h"

namespace quire::server {

/// The error of the first known but unsupported field whose value would change the answer.
std::optional<Error> refuse_unsupported(const boost::json::object& body, bool chat);

/// Top-level fields that no version of the API has, the first 16 of them, each cut to 64 bytes.
std::vector<std::string> unknown_fields(const boost::json::object& body);

/// Logs each unknown field's name once, whoever sends it; after 256 names no more. Thread-safe.
class UnknownFieldLog {
 public:
  /// True when this call logged the name.
  bool note(std::string_view name);

 private:
  static constexpr size_t kMaxNames = 256;
  std::mutex mutex_;
  std::set<std::string, std::less<>> seen_;
};

}  // namespace quire::server
