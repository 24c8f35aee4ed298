#include "quire/bench/load/target.h"

#include <algorithm>
#include <string_view>

#include "quire/base/error.h"

namespace quire::bench {
namespace {

bool is_port(std::string_view text) {
  return !text.empty() && text.size() <= 5 &&
         std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

}  // namespace

std::string Target::authority() const {
  const std::string name = host.find(':') == std::string::npos ? host : "[" + host + "]";
  return port == (tls ? "443" : "80") ? name : name + ":" + port;
}

Target parse_target(const std::string& base_url) {
  const auto wrong = [&] {
    return LoadError("--base-url", "", "a URL such as http://localhost:8000", base_url);
  };
  Target target;
  std::string_view rest = base_url;
  if (const size_t scheme = rest.find("://"); scheme != std::string_view::npos) {
    target.tls = rest.substr(0, scheme) == "https";
    if (!target.tls && rest.substr(0, scheme) != "http") throw wrong();
    rest.remove_prefix(scheme + 3);
  }
  const size_t slash = std::min(rest.find('/'), rest.size());
  std::string_view authority = rest.substr(0, slash);
  std::string_view path = rest.substr(slash);
  while (path.ends_with('/')) path.remove_suffix(1);
  if (path.ends_with("/v1")) path.remove_suffix(3);
  if (authority.find('@') != std::string_view::npos || path.find('?') != std::string_view::npos)
    throw wrong();
  target.path = path;
  std::string_view port;
  if (authority.starts_with('[')) {
    const size_t end = authority.find(']');
    if (end == std::string_view::npos) throw wrong();
    target.host = authority.substr(1, end - 1);
    authority.remove_prefix(end + 1);
    if (!authority.empty() && authority.front() != ':') throw wrong();
    port = authority;
  } else {
    const size_t colon = std::min(authority.find(':'), authority.size());
    target.host = authority.substr(0, colon);
    port = authority.substr(colon);
  }
  if (!port.empty()) {
    if (!is_port(port.substr(1))) throw wrong();
    target.port = port.substr(1);
  } else {
    target.port = target.tls ? "443" : "80";
  }
  if (target.host.empty()) throw wrong();
  return target;
}

}  // namespace quire::bench
