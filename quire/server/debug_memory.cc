// GET /debug/memory: where the engine's bytes are, by its own ledger and by the system.

#include <boost/json.hpp>

#include "quire/base/process_memory.h"
#include "quire/server/service.h"

namespace quire::server {
namespace {

namespace json = boost::json;

json::object count_json(const MemoryCount& count) {
  return {{"current", count.current},
          {"peak", count.peak},
          {"allocated", count.allocated},
          {"freed", count.freed}};
}

json::object ledger_json(const MemorySnapshot& ledger) {
  json::object tags;
  for (int i = 0; i < kNumMemoryTags; ++i) {
    const auto tag = static_cast<MemoryTag>(i);
    tags[memory_tag_name(tag)] = count_json(ledger[tag]);
  }
  return {{"tags", std::move(tags)}, {"total", count_json(ledger.total)}};
}

json::object process_json(const ProcessMemory& process) {
  return {{"rss", process.rss},           {"pss", process.pss},
          {"peak_rss", process.peak_rss}, {"anonymous", process.anonymous},
          {"file", process.file},         {"huge_pages", process.huge_pages},
          {"swap", process.swap},         {"address_space", process.address_space}};
}

json::object plan_json(const llm::MemoryReport& plan) {
  return {{"weights", plan.weights},
          {"packed copies", plan.packed_copies},
          {"kv cache", plan.kv_cache},
          {"arena", plan.arena},
          {"worker scratch", plan.worker_scratch},
          {"tokenizer", plan.tokenizer},
          {"other", plan.other},
          {"total", plan.total()}};
}

}  // namespace

void Service::debug_memory(const HttpRequest& request,
                           const std::shared_ptr<ResponseWriter>& writer) {
  const json::object body{{"unit", "bytes"},
                          {"ledger", ledger_json(llm_->ledger().snapshot())},
                          {"plan", plan_json(llm_->memory())},
                          {"process", process_json(read_process_memory())}};
  writer->send({.status = 200,
                .body = json::serialize(body),
                .headers = common_headers(request),
                .idle_bytes = ""});
}

}  // namespace quire::server
