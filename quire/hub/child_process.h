// run_child: runs a program without a shell, watches it, and never leaves it behind.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace quire::hub {

/// The path of an executable file of this name on PATH; a name with a slash is looked up as it is.
std::optional<std::string> find_program(const std::string& name);

struct ChildCommand {
  std::string program;  // a path
  std::vector<std::string> arguments;
  std::vector<std::pair<std::string, std::string>> environment;  // set over the caller's own
};

struct ChildResult {
  int exit_code = -1;  // -1 when a signal ended it
  int signal = 0;
  std::string output;    // the last 8 KiB of stdout and stderr together
  bool stopped = false;  // because on_tick said so
};

/// Runs the command with no input. Calls `on_tick` about ten times a second; when it returns false
/// the child gets SIGINT, and SIGKILL if it is still there two seconds later. The child is also
/// ended when the calling thread's process dies. Throws LoadError when it cannot be started.
ChildResult run_child(const ChildCommand& command, const std::function<bool()>& on_tick);

}  // namespace quire::hub
