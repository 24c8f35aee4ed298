#include "quire/hub/zip_member.h"

#include <fcntl.h>
#include <unistd.h>
#include <zip.h>

#include <cerrno>
#include <cstddef>
#include <cstring>
#include <memory>
#include <span>
#include <vector>

#include <fmt/format.h>

#include "quire/base/error.h"
#include "quire/hub/sha256.h"

namespace quire::hub {
namespace {

constexpr size_t kPart = 1 << 20;

struct CloseArchive {
  void operator()(zip_t* archive) const { zip_discard(archive); }
};
struct CloseMember {
  void operator()(zip_file_t* member) const { zip_fclose(member); }
};
using Archive = std::unique_ptr<zip_t, CloseArchive>;
using Member = std::unique_ptr<zip_file_t, CloseMember>;

/// A file descriptor that closes itself; every failure names the path.
class File {
 public:
  File(const std::string& path, int flags) : path_(path), fd_(open(path.c_str(), flags, 0644)) {
    if (fd_ < 0) fail();
  }
  ~File() { close(fd_); }
  File(const File&) = delete;
  File& operator=(const File&) = delete;

  void write_all(std::span<const std::byte> bytes) {
    while (!bytes.empty()) {
      const ssize_t written = write(fd_, bytes.data(), bytes.size());
      if (written < 0 && errno == EINTR) continue;
      if (written < 0) fail();
      bytes = bytes.subspan(static_cast<size_t>(written));
    }
  }
  size_t read_some(std::span<std::byte> bytes) {
    ssize_t count = 0;
    while ((count = read(fd_, bytes.data(), bytes.size())) < 0) {
      if (errno != EINTR) fail();
    }
    return static_cast<size_t>(count);
  }
  void sync() {
    if (fsync(fd_) != 0) fail();
  }

 private:
  [[noreturn]] void fail() const { throw LoadError(path_, std::strerror(errno)); }

  std::string path_;
  int fd_;
};

Archive open_archive(const std::string& path) {
  int code = 0;
  Archive archive(zip_open(path.c_str(), ZIP_RDONLY | ZIP_CHECKCONS, &code));
  if (archive == nullptr) {
    zip_error_t error;
    zip_error_init_with_code(&error, code);
    const std::string reason = zip_error_strerror(&error);
    zip_error_fini(&error);
    throw LoadError(path, "", "a zip archive", reason);
  }
  return archive;
}

Member open_member(zip_t* archive, const std::string& path, const ExpectedFile& expected) {
  zip_stat_t info;
  zip_stat_init(&info);
  if (zip_stat(archive, expected.member.c_str(), 0, &info) != 0 ||
      (info.valid & ZIP_STAT_SIZE) == 0) {
    throw LoadError(path, expected.member, "a file in the archive", "none of this name");
  }
  if (info.size != static_cast<zip_uint64_t>(expected.bytes)) {
    throw LoadError(path, expected.member, fmt::format("{} bytes", expected.bytes),
                    fmt::format("{}", info.size));
  }
  Member member(zip_fopen(archive, expected.member.c_str(), 0));
  if (member == nullptr)
    throw LoadError(path, expected.member, "a readable file", zip_strerror(archive));
  return member;
}

[[noreturn]] void stopped(const std::string& path) {
  throw LoadError(path, "interrupted");
}

}  // namespace

void extract_member(const std::string& path, const ExpectedFile& expected,
                    const std::string& destination,
                    const std::function<bool(int64_t)>& on_progress) {
  const Archive archive = open_archive(path);
  const Member member = open_member(archive.get(), path, expected);
  File out(destination, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC);
  Sha256 hash;
  std::vector<std::byte> part(kPart);
  int64_t done = 0;
  while (true) {
    const zip_int64_t count = zip_fread(member.get(), part.data(), part.size());
    if (count < 0) {
      throw LoadError(path, expected.member, "undamaged data",
                      zip_error_strerror(zip_file_get_error(member.get())));
    }
    if (count == 0) break;
    done += count;
    if (done > expected.bytes) break;
    const std::span<const std::byte> bytes(part.data(), static_cast<size_t>(count));
    hash.update(bytes);
    out.write_all(bytes);
    if (!on_progress(done)) stopped(destination);
  }
  if (done != expected.bytes) {
    throw LoadError(path, expected.member, fmt::format("{} bytes", expected.bytes),
                    done > expected.bytes ? "more" : fmt::format("{}", done));
  }
  const std::string digest = hash.finish();
  if (digest != expected.sha256) {
    throw LoadError(path, expected.member, fmt::format("SHA-256 {}", expected.sha256), digest);
  }
  out.sync();
}

std::string file_sha256(const std::string& path, const std::function<bool(int64_t)>& on_progress) {
  File file(path, O_RDONLY | O_CLOEXEC);
  Sha256 hash;
  std::vector<std::byte> part(kPart);
  int64_t done = 0;
  while (const size_t count = file.read_some(part)) {
    hash.update({part.data(), count});
    done += static_cast<int64_t>(count);
    if (!on_progress(done)) stopped(path);
  }
  return hash.finish();
}

}  // namespace quire::hub
