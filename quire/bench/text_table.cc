#include "quire/bench/text_table.h"

#include <algorithm>

#include <fmt/format.h>

namespace quire::bench {

const std::string& TextTable::cell(size_t row, size_t column) const {
  static const std::string kEmpty;
  return column < rows_[row].size() ? rows_[row][column] : kEmpty;
}

std::string TextTable::text() const {
  std::vector<size_t> widths;
  for (size_t column = 0; column < header_.size(); ++column) {
    size_t width = header_[column].size();
    for (size_t row = 0; row < rows_.size(); ++row) {
      width = std::max(width, cell(row, column).size());
    }
    widths.push_back(width);
  }
  std::string out;
  const auto add_line = [&](const auto& cell_of) {
    std::string line;
    for (size_t column = 0; column < widths.size(); ++column) {
      line += column == 0 ? fmt::format("{:<{}}", cell_of(column), widths[column])
                          : fmt::format("  {:>{}}", cell_of(column), widths[column]);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    out += line + "\n";
  };
  add_line([&](size_t column) -> const std::string& { return header_[column]; });
  for (size_t row = 0; row < rows_.size(); ++row) {
    add_line([&](size_t column) -> const std::string& { return cell(row, column); });
  }
  return out;
}

std::string TextTable::markdown() const {
  std::string out = "|";
  for (const std::string& word : header_) out += fmt::format(" {} |", word);
  out += "\n|";
  for (size_t column = 0; column < header_.size(); ++column) out += column == 0 ? "---|" : "---:|";
  out += "\n";
  for (size_t row = 0; row < rows_.size(); ++row) {
    out += "|";
    for (size_t column = 0; column < header_.size(); ++column) {
      out += fmt::format(" {} |", cell(row, column));
    }
    out += "\n";
  }
  return out;
}

std::string percent_text(double part, double whole) {
  return whole > 0 ? fmt::format("{:.0f} %", 100 * part / whole) : "-";
}

std::string time_text(double seconds) {
  if (seconds < 1e-6) return fmt::format("{:.0f} ns", seconds * 1e9);
  if (seconds < 1e-3) return fmt::format("{:.1f} us", seconds * 1e6);
  if (seconds < 1) return fmt::format("{:.2f} ms", seconds * 1e3);
  return fmt::format("{:.2f} s", seconds);
}

}  // namespace quire::bench
