// FakePip: a `python3` on PATH whose pip copies a wheel made here, or fails as a test asks.
#pragma once

#include <filesystem>
#include <map>
#include <string>

#include "quire/hub/catalogue.h"

namespace quire::hub::testing {

/// Owns a temporary folder with the fake program, its wheel and a cache folder; PATH is put back
/// when it goes.
class FakePip {
 public:
  FakePip();
  ~FakePip();
  FakePip(const FakePip&) = delete;
  FakePip& operator=(const FakePip&) = delete;

  /// What the fake does once it knows $dest and $wheel: a piece of shell script.
  void does(const std::string& script) const;
  /// Copies the wheel to where pip would put it.
  static constexpr const char* kCopies = "cp \"$wheel\" \"$dest/package-1-py3-none-any.whl\"";

  /// Makes the wheel: a zip of these files. Texts are stored without compression when `stored`.
  void set_wheel(const std::map<std::string, std::string>& files, bool stored = false) const;

  std::filesystem::path folder() const { return folder_; }
  std::filesystem::path cache() const { return folder_ / "cache"; }
  std::filesystem::path wheel() const { return folder_ / "package.whl"; }
  /// The command lines it was run with, one a line.
  std::string runs() const;
  int num_runs() const;

 private:
  std::filesystem::path folder_;
  std::string old_path_;
};

/// A catalogue of one default model "small" whose file has these contents.
Catalogue catalogue_of(const std::string& contents);

std::string read_text(const std::filesystem::path& path);
void write_text(const std::filesystem::path& path, const std::string& text);

}  // namespace quire::hub::testing
