#include "quire/engine/output.h"

#include <utility>

#include "quire/engine/inbox.h"
#include "quire/engine/output_channel.h"

namespace quire::engine {

std::string_view finish_reason_name(FinishReason reason) {
  switch (reason) {
    case FinishReason::kNone:
      return "";
    case FinishReason::kStop:
      return "stop";
    case FinishReason::kLength:
      return "length";
    case FinishReason::kAbort:
      return "abort";
    case FinishReason::kError:
      return "error";
  }
  return "";
}

void OutputChannel::push(OutputEvent event, bool last) {
  std::lock_guard lock(mutex_);
  events_.push_back(std::move(event));
  closed_ = closed_ || last;
}

void OutputChannel::wake() {
  ready_.notify_all();
  std::lock_guard lock(notify_mutex_);
  if (notify_) notify_();
}

bool OutputChannel::take(std::vector<OutputEvent>& into) {
  into.clear();
  std::lock_guard lock(mutex_);
  into.swap(events_);
  return !into.empty() || !closed_;
}

bool OutputChannel::wait(std::vector<OutputEvent>& into) {
  into.clear();
  std::unique_lock lock(mutex_);
  ready_.wait(lock, [this] { return closed_ || !events_.empty(); });
  into.swap(events_);
  return !into.empty();
}

void OutputChannel::set_notify(std::function<void()> notify) {
  std::lock_guard lock(notify_mutex_);
  notify_ = std::move(notify);
  bool pending = false;
  {
    std::lock_guard events_lock(mutex_);
    pending = !events_.empty();
  }
  if (notify_ && pending) notify_();
}

bool OutputChannel::closed() const {
  std::lock_guard lock(mutex_);
  return closed_;
}

OutputStream::OutputStream(std::shared_ptr<OutputChannel> channel, std::shared_ptr<Inbox> inbox,
                           RequestId id)
    : channel_(std::move(channel)), inbox_(std::move(inbox)), id_(id) {}

OutputStream::~OutputStream() {
  drop();
}

OutputStream::OutputStream(OutputStream&& other) noexcept
    : channel_(std::move(other.channel_)), inbox_(std::move(other.inbox_)), id_(other.id_) {}

OutputStream& OutputStream::operator=(OutputStream&& other) noexcept {
  if (this == &other) return *this;
  drop();
  channel_ = std::move(other.channel_);
  inbox_ = std::move(other.inbox_);
  id_ = other.id_;
  return *this;
}

void OutputStream::drop() {
  if (channel_ == nullptr) return;
  channel_->set_notify({});
  if (!channel_->closed()) cancel();
  channel_.reset();
}

bool OutputStream::take(std::vector<OutputEvent>& into) {
  return channel_->take(into);
}

bool OutputStream::wait(std::vector<OutputEvent>& into) {
  return channel_->wait(into);
}

void OutputStream::set_notify(std::function<void()> notify) {
  channel_->set_notify(std::move(notify));
}

void OutputStream::cancel() {
  inbox_->post(Cancellation{id_});
}

}  // namespace quire::engine
