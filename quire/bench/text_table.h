// TextTable: rows of words in aligned columns, for people; the same as Markdown.
#pragma once

#include <string>
#include <vector>

namespace quire::bench {

/// The first column is flushed left, all others right, as numbers are read.
class TextTable {
 public:
  explicit TextTable(std::vector<std::string> header) : header_(std::move(header)) {}

  /// A row may be shorter than the header: what is missing is empty.
  void add(std::vector<std::string> row) { rows_.push_back(std::move(row)); }
  bool empty() const { return rows_.empty(); }

  /// Lines of columns two spaces apart, the header first.
  std::string text() const;
  std::string markdown() const;

 private:
  const std::string& cell(size_t row, size_t column) const;

  std::vector<std::string> header_;
  std::vector<std::vector<std::string>> rows_;
};

/// "87 %": `part` of `whole`; "-" where the whole is not known (0).
std::string percent_text(double part, double whole);

/// A time in the unit that reads best: "812 ns", "9.3 us", "14.1 ms", "2.31 s".
std::string time_text(double seconds);

}  // namespace quire::bench
