#include "quire/apps/read_text.h"

#include <fstream>
#include <sstream>

#include "quire/base/error.h"

namespace quire::apps {

std::string read_text(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw LoadError(path, "cannot be read");
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

}  // namespace quire::apps
