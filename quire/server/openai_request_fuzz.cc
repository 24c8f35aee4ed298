// Fuzz target: any bytes as the body of a completion and of a chat request must parse or end in an
// Error that can be told to the client.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include <boost/json.hpp>

#include "quire/base/check.h"
#include "quire/server/error_response.h"
#include "quire/server/openai_request.h"

namespace {

void check(const quire::Result<quire::server::OpenAiRequest>& request) {
  if (request.ok()) {
    QUIRE_CHECK(request.value().params.n >= 1 && request.value().params.n <= 128);
    QUIRE_CHECK(request.value().unknown_fields.size() <= 16);
    return;
  }
  QUIRE_CHECK(!request.error().message.empty());
  boost::system::error_code failure;  // of invalid UTF-8, for one
  boost::json::parse(quire::server::error_body(request.error()), failure);
  QUIRE_CHECK(!failure);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view body(reinterpret_cast<const char*>(data), size);
  check(quire::server::parse_completion_request(body));
  check(quire::server::parse_chat_request(body));
  return 0;
}
