// Target: the server that is measured, out of its base URL.
#pragma once

#include <string>
#include <vector>

namespace quire::bench {

struct Target {
  bool tls = false;
  std::string host;  // without brackets, for IPv6
  std::string port;
  std::string path;     // in front of "/v1/..."; empty, or begins with / and ends without
  std::string api_key;  // sent as a bearer token unless empty

  /// As the Host header has it.
  std::string authority() const;
};

/// "http://127.0.0.1:8000", "https://example.org/api", "localhost:8000", "http://[::1]:8000/v1": a
/// last /v1 is left out, since the endpoints' paths have it. Throws LoadError.
Target parse_target(const std::string& base_url);

}  // namespace quire::bench
