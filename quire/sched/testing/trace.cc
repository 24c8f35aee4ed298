#include "quire/sched/testing/trace.h"

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "quire/sched/testing/arrival.h"
#include "quire/sched/testing/fake_engine.h"

namespace quire::sched::testing {
namespace {

using Words = std::vector<std::string>;
using Wrong = std::optional<std::string>;

Words split(std::string_view line) {
  Words words;
  line = line.substr(0, line.find('#'));
  while (true) {
    const size_t begin = line.find_first_not_of(" \t\r,");
    if (begin == std::string_view::npos) return words;
    line.remove_prefix(begin);
    const size_t length = std::min(line.find_first_of(" \t\r,"), line.size());
    words.emplace_back(line.substr(0, length));
    line.remove_prefix(length);
  }
}

std::optional<int32_t> number(std::string_view word) {
  int32_t value = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
  if (error != std::errc() || end != word.data() + word.size()) return std::nullopt;
  return value;
}

Wrong compare(std::string_view what, const Words& expected, const Words& found) {
  if (expected == found) return std::nullopt;
  return fmt::format("expected {} [{}], found [{}]", what, fmt::join(expected, " "),
                     fmt::join(found, " "));
}

const std::set<std::string> kListNames = {"expect",       "waiting", "preempted",   "finished",
                                          "copies",       "logits",  "swapped_out", "swapped_in",
                                          "placeholders", "drafts"};

class Interpreter {
 public:
  Wrong run(const Words& words);

 private:
  Wrong set_options(const Words& words);
  Wrong submit(const Words& words);
  Wrong steps(int32_t count);
  Wrong run_all();
  Wrong launch();
  Wrong land();
  Wrong expect(const Words& words);
  Wrong check_list(const std::string& what, const Words& list) const;

  FakeEngine& engine();
  std::string name(SequenceId id) const;

  SchedulerOptions options_{
      .max_num_seqs = 4, .max_model_len = 4096, .max_logits_rows = 64, .num_blocks = 512};
  int32_t num_drafts_ = 0;
  std::unique_ptr<FakeEngine> engine_;
  std::map<std::string, Request> requests_;
  std::map<RequestId, std::string> names_;
  std::map<RowId, SequenceId> row_holders_;
  std::set<SequenceId> ended_;         // reported as finished
  std::map<std::string, Words> last_;  // of the last step: ran, preempted, finished, copies, logits
};

FakeEngine& Interpreter::engine() {
  if (!engine_) {
    engine_ = std::make_unique<FakeEngine>(options_);
    engine_->set_num_drafts(num_drafts_);
  }
  return *engine_;
}

std::string Interpreter::name(SequenceId id) const {
  const std::string& request = names_.at(id.request);
  if (requests_.at(request).n == 1) return request;
  return fmt::format("{}.{}", request, id.choice);
}

Wrong Interpreter::set_options(const Words& words) {
  if (engine_) return "options must come first";
  const std::map<std::string_view, int32_t*> fields = {
      {"blocks", &options_.num_blocks},
      {"block_tokens", &options_.block_tokens},
      {"budget", &options_.max_num_batched_tokens},
      {"seqs", &options_.max_num_seqs},
      {"context", &options_.max_model_len},
      {"logits", &options_.max_logits_rows},
      {"threshold", &options_.long_prefill_token_threshold},
      {"hash_bits", &options_.hash_bits},
      {"swap", &options_.num_swap_blocks},
      {"plans", &options_.max_plans_in_flight},
  };
  for (size_t i = 1; i + 1 < words.size(); i += 2) {
    const auto value = number(words[i + 1]);
    const auto field = fields.find(words[i]);
    if (value && field != fields.end()) {
      *field->second = *value;
    } else if (value && words[i] == "preemption") {
      options_.preemption_mode = static_cast<PreemptionMode>(*value);
    } else if (value && words[i] == "recompute_ns") {
      options_.recompute_token_ns = *value;
    } else if (value && words[i] == "swap_ns") {
      options_.swap_block_ns = *value;
    } else if (value && words[i] == "drafts") {
      num_drafts_ = *value;
    } else if (value && words[i] == "cache") {
      options_.enable_prefix_caching = *value != 0;
    } else if (value && words[i] == "priority") {
      options_.policy = *value != 0 ? SchedulingPolicy::kPriority : SchedulingPolicy::kFcfs;
    } else if (value && words[i] == "chunked") {
      options_.enable_chunked_prefill = *value != 0;
    } else {
      return fmt::format("unknown option {} {}", words[i], words[i + 1]);
    }
  }
  return std::nullopt;
}

Wrong Interpreter::submit(const Words& words) {
  const auto length = words.size() > 2 ? number(words[2]) : std::nullopt;
  if (!length) return "a name and a prompt length expected";
  Arrival arrival{.id = static_cast<int32_t>(requests_.size()), .length = *length};
  if (words[0] == "same") arrival.prefix_length = *length;
  const std::map<std::string_view, int32_t*> fields = {
      {"max", &arrival.max_tokens}, {"n", &arrival.n},       {"priority", &arrival.priority},
      {"seed", &arrival.seed},      {"stop", &arrival.stop}, {"prefix", &arrival.prefix},
  };
  bool refused = false;
  for (size_t i = 3; i < words.size(); ++i) {
    const auto value = i + 1 < words.size() ? number(words[i + 1]) : std::nullopt;
    const auto field = fields.find(words[i]);
    if (words[i] == "refused") {
      refused = true;
    } else if (words[i] == "logprobs") {
      arrival.logprobs = true;
    } else if (words[i] == "salt" && i + 1 < words.size()) {
      arrival.salt = words[++i];
    } else if (field != fields.end() && value) {
      *field->second = *value;
      ++i;
      if (words[i - 1] == "prefix" && i + 1 < words.size()) {
        arrival.prefix_length = number(words[++i]).value_or(0);
      }
    } else {
      return fmt::format("unknown word {}", words[i]);
    }
  }
  const Request request = request_of(arrival);
  requests_[words[1]] = request;
  names_[request.id] = words[1];
  const auto error = engine().submit(request);
  if (error && !refused) return fmt::format("refused: {}", error->message);
  if (!error && refused) return "accepted";
  return std::nullopt;
}

Wrong Interpreter::launch() {
  const BatchPlan* plan = engine().launch();
  last_.clear();
  for (const SequenceId& id : engine().scheduler().waiting()) last_["waiting"].push_back(name(id));
  if (plan == nullptr) {
    if (engine().scheduler().in_flight()) return std::nullopt;
    return "nothing to run";
  }
  for (const RowId row : plan->finished) {
    const SequenceId id = row_holders_.at(row);
    const auto& choice = engine().choices().at(id);
    if (choice.live()) last_["preempted"].push_back(name(id));
  }
  for (const RowStart& start : plan->started) row_holders_[start.row] = start.sequence;
  for (const PlanRow& row : plan->rows) {
    last_["expect"].push_back(fmt::format("{}:{}", name(row_holders_.at(row.row)), row.num_tokens));
  }
  const auto num_ops = [&](BlockOp::Kind kind) {
    const auto is = [&](const BlockOp& op) { return op.kind == kind; };
    return fmt::format("{}", std::count_if(plan->block_ops.begin(), plan->block_ops.end(), is));
  };
  const auto num_placeholders =
      std::count(plan->tokens.begin(), plan->tokens.end(), kPlaceholderToken);
  int32_t num_drafts = 0;
  for (const PlanRow& row : plan->rows) num_drafts += row.num_draft;
  last_["placeholders"] = {fmt::format("{}", num_placeholders)};
  last_["drafts"] = {fmt::format("{}", num_drafts)};
  last_["copies"] = {num_ops(BlockOp::Kind::kCopy)};
  last_["swapped_out"] = {num_ops(BlockOp::Kind::kSwapOut)};
  last_["swapped_in"] = {num_ops(BlockOp::Kind::kSwapIn)};
  last_["logits"] = {fmt::format("{}", plan->logits_rows.size())};
  return std::nullopt;
}

Wrong Interpreter::land() {
  if (!engine().scheduler().in_flight()) return "no step is in flight";
  engine().land();
  for (const auto& [id, choice] : engine().choices()) {
    if (choice.finish != FinishReason::kNone && ended_.insert(id).second) {
      last_["finished"].push_back(name(id));
    }
  }
  return std::nullopt;
}

Wrong Interpreter::steps(int32_t count) {
  for (int32_t i = 0; i < count; ++i) {
    if (auto wrong = launch()) return wrong;
    if (auto wrong = land()) return wrong;
  }
  return std::nullopt;
}

Wrong Interpreter::run_all() {
  int64_t num_steps = 0;
  while (!engine().scheduler().idle() && !engine().violation()) {
    if (++num_steps > engine().num_tokens()) return "more steps than there are tokens";
    if (auto wrong = steps(1)) return wrong;
  }
  return std::nullopt;
}

Wrong Interpreter::check_list(const std::string& what, const Words& list) const {
  const auto found = last_.find(what);
  return compare(what, list, found == last_.end() ? Words{} : found->second);
}

/// `expect a:64 b:1 waiting c copies 1`: each list runs up to the next list's name.
Wrong Interpreter::expect(const Words& words) {
  for (size_t i = 0; i < words.size();) {
    const std::string& what = words[i++];
    Words list;
    while (i < words.size() && kListNames.count(words[i]) == 0) list.push_back(words[i++]);
    if (auto wrong = check_list(what, list)) return wrong;
  }
  return std::nullopt;
}

Wrong Interpreter::run(const Words& words) {
  const std::string& verb = words[0];
  const std::string argument = words.size() > 1 ? words[1] : "";
  Wrong wrong;
  if (verb == "options") {
    return set_options(words);
  } else if (verb == "submit" || verb == "same") {
    wrong = submit(words);
  } else if (verb == "step") {
    wrong = steps(number(argument).value_or(1));
  } else if (verb == "launch") {
    wrong = launch();
  } else if (verb == "land") {
    wrong = land();
  } else if (verb == "run") {
    wrong = run_all();
  } else if (verb == "cancel") {
    engine().cancel(requests_.at(argument).id);
  } else if (verb == "idle") {
    if (engine().launch() != nullptr) wrong = "there is something to run";
  } else if (verb == "budget") {
    engine().set_token_budget(number(argument).value_or(0));
  } else if (verb == "hits") {
    const int64_t hits = engine().scheduler().cache_counts().hits;
    wrong = compare("hits", {argument}, {fmt::format("{}", hits)});
  } else if (verb == "free") {
    wrong =
        compare("free", {argument}, {fmt::format("{}", engine().scheduler().pool().num_free())});
  } else if (verb == "swap_held") {
    const kv::BlockPool* pool = engine().scheduler().swap_pool();
    const int32_t num_held = pool == nullptr ? 0 : pool->num_used();
    wrong = compare("swap_held", {argument}, {fmt::format("{}", num_held)});
  } else if (verb == "restart") {
    if (!engine().scheduler().idle()) return "a restart while there is something to run";
    engine().restart();
  } else if (kListNames.count(verb) > 0) {
    wrong = expect(words);
  } else {
    wrong = fmt::format("unknown statement {}", verb);
  }
  return wrong ? wrong : engine().violation();
}

}  // namespace

std::optional<std::string> run_trace(std::string_view text) {
  Interpreter interpreter;
  for (int line = 1; !text.empty(); ++line) {
    const size_t length = std::min(text.find('\n'), text.size());
    const Words words = split(text.substr(0, length));
    text.remove_prefix(std::min(length + 1, text.size()));
    if (words.empty()) continue;
    if (auto wrong = interpreter.run(words)) return fmt::format("line {}: {}", line, *wrong);
  }
  return std::nullopt;
}

}  // namespace quire::sched::testing
