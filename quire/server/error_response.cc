#include "quire/server/error_response.h"

#include <boost/json.hpp>

namespace quire::server {
namespace {

struct Row {
  ErrorKind kind;
  int status;
  const char* type;
};

constexpr Row kTable[] = {
    {ErrorKind::kInvalid, 400, "invalid_request_error"},
    {ErrorKind::kUnauthorized, 401, "authentication_error"},
    {ErrorKind::kNotFound, 404, "not_found_error"},
    {ErrorKind::kTooLarge, 413, "invalid_request_error"},
    {ErrorKind::kOverloaded, 429, "rate_limit_error"},
    {ErrorKind::kUnavailable, 503, "service_unavailable_error"},
    {ErrorKind::kInternal, 500, "internal_server_error"},
};

const Row& row_of(ErrorKind kind) {
  for (const Row& row : kTable) {
    if (row.kind == kind) return row;
  }
  return kTable[std::size(kTable) - 1];
}

}  // namespace

std::string error_body(const Error& error) {
  const Row& row = row_of(error.kind);
  // An internal error's own words may hold paths or addresses: the client gets a fixed sentence.
  const std::string message =
      error.kind == ErrorKind::kInternal ? "The server met an internal error." : error.message;
  boost::json::object detail;
  detail["message"] = message;
  detail["type"] = row.type;
  detail["param"] = error.param.empty() ? boost::json::value() : boost::json::value(error.param);
  detail["code"] = row.status;
  return boost::json::serialize(boost::json::object{{"error", std::move(detail)}});
}

HttpResponse error_response(const Error& error) {
  HttpResponse response;
  response.status = row_of(error.kind).status;
  response.body = error_body(error);
  if (response.status == 429 || response.status == 503)
    response.headers.emplace_back("Retry-After", "1");
  if (response.status == 401) response.headers.emplace_back("WWW-Authenticate", "Bearer");
  return response;
}

}  // namespace quire::server
