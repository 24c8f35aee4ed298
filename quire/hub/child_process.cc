#include "quire/hub/child_process.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "quire/base/error.h"

extern char** environ;

namespace quire::hub {
namespace {

constexpr size_t kOutputKept = 8192;
constexpr int kTickMs = 100;
constexpr int kEndingMs = 10;  // once the output is closed, the end is near
constexpr std::chrono::seconds kGrace{2};

/// argv or envp: pointers into strings that stay where they are.
class StringArray {
 public:
  void add(std::string text) { texts_.push_back(std::move(text)); }
  char** data() {
    pointers_.clear();
    for (std::string& text : texts_) pointers_.push_back(text.data());
    pointers_.push_back(nullptr);
    return pointers_.data();
  }

 private:
  std::vector<std::string> texts_;
  std::vector<char*> pointers_;
};

StringArray arguments_of(const ChildCommand& command) {
  StringArray arguments;
  arguments.add(command.program);
  for (const std::string& argument : command.arguments) arguments.add(argument);
  return arguments;
}

StringArray environment_of(const ChildCommand& command) {
  StringArray result;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text(*entry);
    bool replaced = false;
    for (const auto& [name, value] : command.environment) {
      replaced = replaced || text.starts_with(name + "=");
    }
    if (!replaced) result.add(std::string(text));
  }
  for (const auto& [name, value] : command.environment)
    result.add(fmt::format("{}={}", name, value));
  return result;
}

/// A pipe whose ends are closed with it and never inherited.
struct Pipe {
  Pipe() {
    if (pipe2(ends.data(), O_CLOEXEC) != 0) throw LoadError("pipe", std::strerror(errno));
  }
  ~Pipe() {
    for (int& end : ends) close_end(end);
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;
  static void close_end(int& end) {
    if (end >= 0) close(end);
    end = -1;
  }
  int& read_end() { return ends[0]; }
  int& write_end() { return ends[1]; }
  std::array<int, 2> ends = {-1, -1};
};

/// The child's part between fork and exec: only calls that are safe there.
[[noreturn]] void become(char* program, char** argv, char** envp, int output, int failure,
                         pid_t parent) {
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (getppid() != parent) _exit(127);  // it died before the line above
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  for (const int signal : {SIGINT, SIGTERM, SIGPIPE, SIGCHLD}) std::signal(signal, SIG_DFL);
  const int null = open("/dev/null", O_RDONLY);
  if (null >= 0 && dup2(null, STDIN_FILENO) >= 0 && dup2(output, STDOUT_FILENO) >= 0 &&
      dup2(output, STDERR_FILENO) >= 0) {
    execve(program, argv, envp);
  }
  const int reason = errno;
  [[maybe_unused]] const auto written = write(failure, &reason, sizeof(reason));
  _exit(127);
}

enum class Output { kSome, kNoneNow, kClosed };

/// Reads a part of what the child has written and keeps the end of it.
Output read_output(int fd, std::string& kept) {
  std::array<char, 4096> part;
  const ssize_t count = read(fd, part.data(), part.size());
  if (count < 0 && (errno == EINTR || errno == EAGAIN)) return Output::kNoneNow;
  if (count <= 0) return Output::kClosed;
  kept.append(part.data(), static_cast<size_t>(count));
  if (kept.size() > kOutputKept) kept.erase(0, kept.size() - kOutputKept);
  return Output::kSome;
}

/// Ends a child that an exception would otherwise leave running.
class Reaper {
 public:
  explicit Reaper(pid_t pid) : pid_(pid) {}
  ~Reaper() {
    if (pid_ <= 0) return;
    kill(pid_, SIGKILL);
    int status = 0;
    while (waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
    }
  }
  Reaper(const Reaper&) = delete;
  Reaper& operator=(const Reaper&) = delete;

  /// True once the child has ended; then `status` is what waitpid says.
  bool ended(int& status) {
    const pid_t found = waitpid(pid_, &status, WNOHANG);
    if (found == 0 || (found < 0 && errno == EINTR)) return false;
    pid_ = -1;
    return true;
  }
  void send(int signal) const { kill(pid_, signal); }

 private:
  pid_t pid_;
};

ChildResult watch(pid_t pid, int output, const std::function<bool()>& on_tick) {
  using Clock = std::chrono::steady_clock;
  Reaper child(pid);
  ChildResult result;
  bool open_output = true;
  Clock::time_point killed_at;
  int status = 0;
  while (!child.ended(status)) {
    pollfd waiting{output, POLLIN, 0};
    if (poll(&waiting, open_output ? 1 : 0, open_output ? kTickMs : kEndingMs) > 0) {
      open_output = read_output(output, result.output) != Output::kClosed;
    }
    if (!result.stopped && !on_tick()) {
      result.stopped = true;
      killed_at = Clock::now() + kGrace;
      child.send(SIGINT);
    } else if (result.stopped && Clock::now() > killed_at) {
      child.send(SIGKILL);
    }
  }
  // A grandchild may still hold the other end: take what is there and do not wait for more.
  fcntl(output, F_SETFL, O_NONBLOCK);
  while (open_output && read_output(output, result.output) == Output::kSome) {
  }
  if (WIFEXITED(status)) result.exit_code = WEXITSTATUS(status);
  if (WIFSIGNALED(status)) result.signal = WTERMSIG(status);
  return result;
}

}  // namespace

std::optional<std::string> find_program(const std::string& name) {
  if (name.find('/') != std::string::npos) {
    return access(name.c_str(), X_OK) == 0 ? std::optional(name) : std::nullopt;
  }
  const char* path = std::getenv("PATH");
  std::string_view rest = path != nullptr ? path : "/usr/local/bin:/usr/bin:/bin";
  while (!rest.empty()) {
    const auto folder = rest.substr(0, rest.find(':'));
    rest.remove_prefix(std::min(rest.size(), folder.size() + 1));
    if (folder.empty()) continue;
    std::string candidate = std::string(folder) + "/" + name;
    if (access(candidate.c_str(), X_OK) == 0) return candidate;
  }
  return std::nullopt;
}

ChildResult run_child(const ChildCommand& command, const std::function<bool()>& on_tick) {
  StringArray arguments = arguments_of(command);
  StringArray environment = environment_of(command);
  std::string program = command.program;
  char** argv = arguments.data();
  char** envp = environment.data();
  Pipe output;
  Pipe failure;
  const pid_t parent = getpid();
  const pid_t pid = fork();
  if (pid < 0) throw LoadError(command.program, std::strerror(errno));
  if (pid == 0) {
    become(program.data(), argv, envp, output.write_end(), failure.write_end(), parent);
  }
  Pipe::close_end(output.write_end());
  Pipe::close_end(failure.write_end());
  ChildResult result = watch(pid, output.read_end(), on_tick);
  int reason = 0;
  if (read(failure.read_end(), &reason, sizeof(reason)) == sizeof(reason)) {
    throw LoadError(command.program, std::strerror(reason));
  }
  return result;
}

}  // namespace quire::hub
