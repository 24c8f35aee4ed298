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

std::string body_of(const Error& error, int status) {
  // An internal error's own words may hold paths or addresses: the client gets a fixed sentence.
  const std::string message =
      error.kind == ErrorKind::kInternal ? "The server met an internal error." : error.message;
  boost::json::object detail;
  detail["message"] = message;
  detail["type"] = row_of(error.kind).type;
  detail["param"] = error.param.empty() ? boost::json::value() : boost::json::value(error.param);
  detail["code"] = status;
  return boost::json::serialize(boost::json::object{{"error", std::move(detail)}});
}

}  // namespace

std::string error_body(const Error& error) {
  return body_of(error, row_of(error.kind).status);
}

HttpResponse error_response(const Error& error) {
  return error_response(error, row_of(error.kind).status);
}

HttpResponse error_response(const Error& error, int status) {
  HttpResponse response;
  response.status = status;
  response.body = body_of(error, status);
  if (status == 429 || status == 503) response.headers.emplace_back("Retry-After", "1");
  if (status == 401) response.headers.emplace_back("WWW-Authenticate", "Bearer");
  return response;
}

}  // namespace quire::server
