#include "quire/bench/load/sse_parser.h"

#include <utility>

namespace quire::bench {

void SseParser::feed(std::string_view bytes, std::vector<std::string>& events) {
  while (!bytes.empty()) {
    if (std::exchange(after_cr_, false) && bytes.front() == '\n') {
      bytes.remove_prefix(1);
      continue;
    }
    const size_t end = bytes.find_first_of("\r\n");
    line_ += bytes.substr(0, end);
    if (end == std::string_view::npos) return;
    after_cr_ = bytes[end] == '\r';
    bytes.remove_prefix(end + 1);
    end_line(events);
  }
}

void SseParser::end_line(std::vector<std::string>& events) {
  const std::string line = std::exchange(line_, {});
  if (line.empty()) {
    if (std::exchange(has_data_, false)) events.push_back(std::exchange(data_, {}));
    return;
  }
  const std::string_view view = line;
  const size_t colon = view.find(':');
  if (view.substr(0, colon) != "data") return;
  std::string_view value = colon == std::string_view::npos ? "" : view.substr(colon + 1);
  if (value.starts_with(' ')) value.remove_prefix(1);
  if (has_data_) data_ += '\n';
  data_ += value;
  has_data_ = true;
}

}  // namespace quire::bench
