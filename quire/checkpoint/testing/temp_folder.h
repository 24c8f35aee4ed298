// TempFolder, by the name that tests of checkpoints know it by.
#pragma once

#include "quire/base/testing/temp_folder.h"

namespace quire::checkpoint::testing {

using quire::TempFolder;

}  // namespace quire::checkpoint::testing
