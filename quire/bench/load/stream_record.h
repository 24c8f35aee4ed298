// StreamRecord: when the tokens of one streamed answer came, read out of its events.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace quire::bench {

/// Times in seconds from the start of the run.
struct StreamRecord {
  double sent_s = 0;                  // before connecting
  std::vector<double> token_times_s;  // arrival of each event that brought text
  double done_s = 0;                  // the answer was complete, or had failed
  int64_t prompt_tokens = 0;          // as the server counted
  int64_t output_tokens = 0;          // as the server counted, else the events that brought text
  int64_t cached_tokens = 0;          // of the prompt, as the server counted
  std::string error;                  // empty: the stream ended as it should

  bool ok() const { return error.empty(); }
  double ttft_s() const { return token_times_s.empty() ? 0 : token_times_s.front() - sent_s; }
  double e2e_s() const { return done_s - sent_s; }
};

/// Takes the events of one answer of either endpoint in their order.
class StreamReader {
 public:
  /// `data` of one event that came at `now_s`. Returns false after "[DONE]".
  bool take(std::string_view data, double now_s, StreamRecord& record);
  /// Call when the connection has ended: fills in what the server did not count, and says what is
  /// missing.
  void finish(StreamRecord& record);

 private:
  double first_event_s_ = -1;  // of any event with a choice: for answers without any text
  bool counted_ = false;       // the server sent usage
  bool done_ = false;
};

}  // namespace quire::bench
