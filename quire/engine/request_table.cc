#include "quire/engine/request_table.h"

#include <algorithm>
#include <utility>

#include "quire/base/check.h"

namespace quire::engine {
namespace {

FinishReason finish_of(sched::FinishReason reason) {
  switch (reason) {
    case sched::FinishReason::kNone:
      return FinishReason::kNone;
    case sched::FinishReason::kStop:
      return FinishReason::kStop;
    case sched::FinishReason::kLength:
      return FinishReason::kLength;
  }
  return FinishReason::kNone;
}

}  // namespace

RequestTable::RequestTable(int32_t max_rows, const text::Tokenizer* tokenizer,
                           std::vector<int32_t> eos_token_ids, Admission& admission)
    : tokenizer_(tokenizer),
      eos_token_ids_(std::move(eos_token_ids)),
      admission_(admission),
      rows_(static_cast<size_t>(max_rows)) {}

void RequestTable::add(const Submission& submission) {
  const sched::Request& asked = submission.request;
  auto request = std::make_unique<Request>();
  request->id = asked.id;
  request->sampling = asked.sampling;
  request->include_stop = submission.include_stop_str_in_output;
  request->num_unended = asked.n;
  request->channel = submission.channel;
  request->summary.num_prompt_tokens = static_cast<int64_t>(asked.prompt.size());
  request->summary.arrival = submission.arrival;
  request->choices.resize(static_cast<size_t>(asked.n));
  if (!submission.stop.empty()) {
    for (Choice& choice : request->choices) {
      choice.text = std::make_unique<StopText>(*tokenizer_, submission.skip_special_tokens,
                                               submission.stop, request->include_stop);
    }
  }
  requests_.emplace(asked.id, std::move(request));
}

void RequestTable::end(RequestId id, FinishReason reason, const std::optional<Error>& error,
                       Clock::time_point now) {
  const auto found = requests_.find(id);
  if (found == requests_.end()) return;
  Request& request = *found->second;
  for (size_t i = 0; i < request.choices.size(); ++i) {
    Choice& choice = request.choices[i];
    if (choice.ended) continue;
    choice.pending.error = error;
    if (choice.text) choice.pending.text = choice.text->flush();
    send(request, static_cast<int32_t>(i), reason, now);
  }
  forget_ended(request);
}

void RequestTable::end_all(FinishReason reason, const std::optional<Error>& error,
                           Clock::time_point now) {
  for (const RequestId id : ids()) end(id, reason, error, now);
}

std::vector<RequestId> RequestTable::ids() const {
  std::vector<RequestId> ids;
  ids.reserve(requests_.size());
  for (const auto& [id, request] : requests_) ids.push_back(id);
  return ids;
}

void RequestTable::begin(const sched::BatchPlan& plan, Clock::time_point now) {
  for (const sched::RowStart& start : plan.started) {
    Request& request = *requests_.at(start.sequence.request);
    rows_[static_cast<size_t>(start.row)] = {&request, start.sequence.choice};
    if (request.has_started) continue;
    request.summary.first_scheduled = now;
    leave_queue(request);
  }
}

std::span<const sched::SampledToken> RequestTable::judge(const sched::BatchPlan& plan,
                                                         runner::StepOutput& output) {
  sampled_.assign(output.tokens.begin(), output.tokens.end());
  size_t next = 0;
  for (size_t i = 0; i < plan.uses.size(); ++i) {
    const sched::LogitsUse& use = plan.uses[i];
    const Owner& owner = rows_[static_cast<size_t>(use.row)];
    Request& request = *owner.request;
    Choice& choice = request.choices[static_cast<size_t>(owner.choice)];
    if (use.kind == sched::LogitsUse::Kind::kPromptLogprob) {
      if (request.sampling.prompt_logprobs < 0) continue;
      choice.pending.prompt_logprobs.push_back(std::move(output.logprobs[i]));
      continue;
    }
    sched::SampledToken& sampled = sampled_[next++];
    if (request.sampling.logprobs >= 0) {
      choice.pending.logprobs.push_back(std::move(output.logprobs[i]));
    }
    sampled.stop = take_token(request, choice, sampled.token);
  }
  QUIRE_CHECK(next == sampled_.size());
  return sampled_;
}

/// Fills the choice's pending event; true when this token is its last one.
bool RequestTable::take_token(const Request& request, Choice& choice, int32_t token) {
  const sched::SamplingSpec& spec = request.sampling;
  OutputEvent& event = choice.pending;
  const bool may_stop = choice.num_output >= spec.min_tokens;
  event.tokens.push_back(token);
  ++choice.num_output;
  // Sorted by normalize_request.
  if (may_stop &&
      std::binary_search(spec.stop_token_ids.begin(), spec.stop_token_ids.end(), token)) {
    const bool is_eos = !spec.ignore_eos && std::find(eos_token_ids_.begin(), eos_token_ids_.end(),
                                                      token) != eos_token_ids_.end();
    if (!is_eos) event.stop_token = token;
    event.drop_last_text = !request.include_stop;
    if (choice.text) {
      event.text.emplace();
      if (request.include_stop) *event.text += choice.text->push(token, false).text;
      *event.text += choice.text->flush();
    }
    return true;
  }
  if (!choice.text) return false;
  StopMatcher::Found found = choice.text->push(token, may_stop);
  event.text = std::move(found.text);
  if (found.stop) event.stop_string = choice.text->stop(*found.stop);
  return found.stop.has_value();
}

void RequestTable::deliver(std::span<const sched::CommitEvent> events, Clock::time_point now) {
  for (const sched::CommitEvent& event : events) {
    const auto found = requests_.find(event.sequence.request);
    if (found == requests_.end()) continue;
    Request& request = *found->second;
    Choice& choice = request.choices[static_cast<size_t>(event.sequence.choice)];
    request.summary.num_cached_tokens += event.num_cached;
    stats_.prompt_tokens_cached += event.num_cached;
    const FinishReason finish = finish_of(event.finish);
    if (finish == FinishReason::kLength && choice.text) {
      if (!choice.pending.text) choice.pending.text.emplace();
      *choice.pending.text += choice.text->flush();
    }
    send(request, event.sequence.choice, finish, now);
    forget_ended(request);
  }
}

/// Moves the choice's pending event into the stream.
void RequestTable::send(Request& request, int32_t index, FinishReason finish,
                        Clock::time_point now) {
  Choice& choice = request.choices[static_cast<size_t>(index)];
  OutputEvent event = std::exchange(choice.pending, {});
  event.choice = index;
  event.finish = finish;
  event.time = now;
  RequestSummary& summary = request.summary;
  if (!event.tokens.empty()) {
    if (summary.num_generated_tokens == 0) summary.first_token = now;
    summary.num_generated_tokens += static_cast<int64_t>(event.tokens.size());
    stats_.generation_tokens += static_cast<int64_t>(event.tokens.size());
    summary.last_token = now;
  }
  if (!request.prompt_counted && (!event.tokens.empty() || finish == FinishReason::kLength)) {
    request.prompt_counted = true;
    stats_.prompt_tokens += summary.num_prompt_tokens;
  }
  const bool streams = finish == FinishReason::kNone;
  if (streams != std::exchange(choice.streaming, streams)) num_streaming_ += streams ? 1 : -1;
  if (finish != FinishReason::kNone) {
    choice.ended = true;
    --request.num_unended;
    ++stats_.finished[static_cast<size_t>(finish)];
  }
  const bool last = request.num_unended == 0;
  if (last) {
    if (!request.has_started) {
      summary.first_scheduled = summary.arrival;
      leave_queue(request);
    }
    if (summary.num_generated_tokens == 0) summary.first_token = summary.last_token = now;
    event.summary = summary;
  }
  request.channel->push(std::move(event), last);
  if (touched_.empty() || touched_.back() != request.channel) touched_.push_back(request.channel);
}

void RequestTable::leave_queue(Request& request) {
  request.has_started = true;
  admission_.leave_queue(request.summary.num_prompt_tokens);
}

void RequestTable::forget_ended(const Request& request) {
  if (request.num_unended > 0) return;
  for (Owner& owner : rows_) {
    if (owner.request == &request) owner.request = nullptr;
  }
  requests_.erase(request.id);
  ++num_forgotten_;
}

void RequestTable::wake() {
  for (const std::shared_ptr<OutputChannel>& channel : touched_) channel->wake();
  touched_.clear();
  for (; num_forgotten_ > 0; --num_forgotten_) admission_.leave();
}

}  // namespace quire::engine
