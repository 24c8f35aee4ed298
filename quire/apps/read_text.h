// read_text: a file that an option names, whole.
#pragma once

#include <string>

namespace quire::apps {

/// Throws LoadError where it cannot be read.
std::string read_text(const std::string& path);

}  // namespace quire::apps
