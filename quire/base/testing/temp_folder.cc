#include "quire/base/testing/temp_folder.h"

#include <cstdlib>
#include <filesystem>
#include <system_error>

#include "quire/base/error.h"

namespace quire {

TempFolder::TempFolder() {
  std::string name = (std::filesystem::temp_directory_path() / "quire_test_XXXXXX").string();
  if (mkdtemp(name.data()) == nullptr) throw LoadError(name, "cannot be made");
  path_ = name;
}

TempFolder::~TempFolder() {
  std::error_code error;
  std::filesystem::remove_all(path_, error);
}

}  // namespace quire
