// SseParser: the data of server-sent events, out of bytes that arrive cut anywhere.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace quire::bench {

/// As the HTML standard parses an event stream (section 9.2.6): lines end with LF, CR or CR LF; an
/// empty line ends an event; the data lines of one event are joined by LF; comments and other
/// fields are ignored.
class SseParser {
 public:
  /// Appends the data of each event that `bytes` completes to `events`.
  void feed(std::string_view bytes, std::vector<std::string>& events);

 private:
  void end_line(std::vector<std::string>& events);

  std::string line_;
  std::string data_;
  bool has_data_ = false;
  bool after_cr_ = false;  // a LF now belongs to the line end before it
};

}  // namespace quire::bench
