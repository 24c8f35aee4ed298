// GET /debug/memory: where the engine's bytes are, by its own ledger and by the system.

#include <boost/json.hpp>

#include "quire/base/process_memory.h"
#include "quire/llm/profile_json.h"
#include "quire/server/service.h"

namespace quire::server {

namespace json = boost::json;

void Service::debug_memory(const HttpRequest& request,
                           const std::shared_ptr<ResponseWriter>& writer) {
  const json::object body{{"unit", "bytes"},
                          {"ledger", llm::ledger_json(llm_->ledger().snapshot())},
                          {"plan", llm::report_json(llm_->memory())},
                          {"process", llm::process_json(read_process_memory())}};
  writer->send({.status = 200,
                .body = json::serialize(body),
                .headers = common_headers(request),
                .idle_bytes = ""});
}

}  // namespace quire::server
