#include "quire/bench/trace/trace_script.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>

#include <fmt/format.h>

#include "quire/base/error.h"

namespace quire::bench {
namespace {

using Words = std::vector<std::string>;
using Kind = TraceStatement::Kind;

constexpr int32_t kLargest = 1 << 20;
constexpr std::string_view kExpectations[] = {"expect", "waiting", "preempted", "finished",
                                              "copies", "logits",  "free",      "idle"};

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

class Reader {
 public:
  explicit Reader(std::string where) : where_(std::move(where)) {}

  void read(int64_t line, const Words& words);
  TraceScript take();

 private:
  [[noreturn]] void fail(const std::string& message) const {
    throw LoadError(fmt::format("{}:{}", where_, line_), message);
  }
  int32_t number(const Words& words, size_t index) const;
  void set_options(const Words& words);
  void submit(const Words& words);
  sched::RequestId request_named(const Words& words) const;

  std::string where_;
  int64_t line_ = 0;
  TraceScript script_;
  std::map<std::string, sched::RequestId> ids_;
};

int32_t Reader::number(const Words& words, size_t index) const {
  if (index >= words.size()) fail(fmt::format("a number expected after {}", words.back()));
  const std::string& word = words[index];
  int32_t value = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
  if (error != std::errc() || end != word.data() + word.size() || value < 0 || value > kLargest) {
    fail(fmt::format("a number from 0 to {} expected, found {}", kLargest, word));
  }
  return value;
}

void Reader::set_options(const Words& words) {
  sched::SchedulerOptions& options = script_.options;
  const std::map<std::string_view, int32_t*> fields = {
      {"blocks", &options.num_blocks},
      {"block_tokens", &options.block_tokens},
      {"budget", &options.max_num_batched_tokens},
      {"seqs", &options.max_num_seqs},
      {"context", &options.max_model_len},
      {"logits", &options.max_logits_rows},
      {"threshold", &options.long_prefill_token_threshold},
  };
  for (size_t i = 1; i < words.size(); i += 2) {
    const int32_t value = number(words, i + 1);
    if (words[i] == "chunked") {
      options.enable_chunked_prefill = value != 0;
    } else if (const auto field = fields.find(words[i]); field != fields.end()) {
      *field->second = value;
    } else {
      fail(fmt::format("unknown option {}", words[i]));
    }
  }
}

// Tokens that are common come from one sequence, the others from one of the request's own.
void Reader::submit(const Words& words) {
  if (words.size() < 3) fail("a name and a prompt length expected");
  TraceStatement statement{.kind = Kind::kSubmit};
  sched::Request& request = statement.request;
  request.id = static_cast<sched::RequestId>(script_.names.size());
  const int32_t length = number(words, 2);
  int32_t common = words[0] == "same" ? length : 0;
  for (size_t i = 3; i < words.size(); ++i) {
    if (words[i] == "refused") return;  // a test's expectation: nothing to draw
    if (words[i] == "logprobs") {
      request.sampling.prompt_logprobs = 0;
    } else if (words[i] == "max") {
      request.sampling.max_tokens = number(words, ++i);
    } else if (words[i] == "n") {
      request.n = number(words, ++i);
    } else if (words[i] == "priority") {
      request.priority = number(words, ++i);
    } else if (words[i] == "shares") {
      common = number(words, ++i);
    } else {
      fail(fmt::format("unknown word {}", words[i]));
    }
  }
  for (int32_t i = 0; i < length; ++i) {
    request.prompt.push_back(i < common ? i
                                        : static_cast<int32_t>(request.id + 1) * 4096 + i % 4096);
  }
  if (!ids_.emplace(words[1], request.id).second) fail(fmt::format("a second {}", words[1]));
  script_.names.push_back(words[1]);
  script_.statements.push_back(std::move(statement));
}

sched::RequestId Reader::request_named(const Words& words) const {
  const auto found = words.size() == 2 ? ids_.find(words[1]) : ids_.end();
  if (found == ids_.end()) fail("the name of a request expected");
  return found->second;
}

void Reader::read(int64_t line, const Words& words) {
  line_ = line;
  const std::string& verb = words[0];
  if (verb == "options") {
    set_options(words);
  } else if (verb == "submit" || verb == "same") {
    submit(words);
  } else if (verb == "step") {
    script_.statements.push_back(
        {.kind = Kind::kSteps, .num_steps = words.size() > 1 ? number(words, 1) : 1});
  } else if (verb == "run") {
    script_.statements.push_back({.kind = Kind::kRun});
  } else if (verb == "cancel") {
    script_.statements.push_back({.kind = Kind::kCancel, .id = request_named(words)});
  } else if (std::find(std::begin(kExpectations), std::end(kExpectations), verb) ==
             std::end(kExpectations)) {
    fail(fmt::format("unknown statement {}", verb));
  }
}

TraceScript Reader::take() {
  const auto steps = [](const TraceStatement& statement) {
    return statement.kind == Kind::kSteps || statement.kind == Kind::kRun;
  };
  if (std::none_of(script_.statements.begin(), script_.statements.end(), steps)) {
    script_.statements.push_back({.kind = Kind::kRun});
  }
  return std::move(script_);
}

}  // namespace

TraceScript parse_trace(std::string_view text, const std::string& where) {
  Reader reader(where);
  for (int64_t line = 1; !text.empty(); ++line) {
    const size_t length = std::min(text.find('\n'), text.size());
    const Words words = split(text.substr(0, length));
    text.remove_prefix(std::min(length + 1, text.size()));
    if (!words.empty()) reader.read(line, words);
  }
  return reader.take();
}

std::string_view textbook_trace() {
  return "options seqs 3 blocks 16 block_tokens 4\n"
         "submit A 5 max 12\n"
         "submit B 7 max 4\n"
         "submit C 6 max 8\n"
         "submit D 4 max 6\n"
         "run\n";
}

}  // namespace quire::bench
