// TempFolder: a folder of a test's own, gone with the object.
#pragma once

#include <string>

namespace quire {

class TempFolder {
 public:
  /// Throws LoadError when it cannot be made.
  TempFolder();
  ~TempFolder();
  TempFolder(const TempFolder&) = delete;
  TempFolder& operator=(const TempFolder&) = delete;

  const std::string& path() const { return path_; }
  std::string file(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

}  // namespace quire
