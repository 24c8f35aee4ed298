#include "quire/hub/child_process.h"

#include <chrono>
#include <csignal>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "quire/base/error.h"

namespace quire::hub {
namespace {

ChildResult shell(
    const std::string& script, const std::function<bool()>& on_tick = [] { return true; }) {
  return run_child({"/bin/sh", {"-c", script}, {{"QUIRE_GREETING", "hello"}}}, on_tick);
}

TEST(ChildProcess, GivesOutputAndExitCode) {
  const ChildResult result = shell("echo $QUIRE_GREETING; echo error >&2; exit 3");
  EXPECT_EQ(result.exit_code, 3);
  EXPECT_EQ(result.signal, 0);
  EXPECT_EQ(result.output, "hello\nerror\n");
  EXPECT_EQ(shell("read line || echo nothing").output, "nothing\n");  // no input
  EXPECT_EQ(shell("kill -TERM $$").signal, SIGTERM);
}

TEST(ChildProcess, KeepsTheEndOfLongOutput) {
  const ChildResult result = shell("i=0; while [ $i -lt 5000 ]; do echo line $i; i=$((i+1)); done");
  EXPECT_LE(result.output.size(), 8192u);
  EXPECT_TRUE(result.output.ends_with("line 4999\n"));
}

TEST(ChildProcess, ArgumentsAreNotReadByAShell) {
  const ChildResult result =
      run_child({"/bin/echo", {"$(id); `id`", "a b"}, {}}, [] { return true; });
  EXPECT_EQ(result.output, "$(id); `id` a b\n");
}

TEST(ChildProcess, StopsOnRequest) {
  const auto start = std::chrono::steady_clock::now();
  const ChildResult polite = shell("exec sleep 60", [] { return false; });
  EXPECT_TRUE(polite.stopped);
  EXPECT_EQ(polite.signal, SIGINT);
  const ChildResult stubborn = shell("trap '' INT; while :; do :; done", [] { return false; });
  EXPECT_TRUE(stubborn.stopped);
  EXPECT_EQ(stubborn.signal, SIGKILL);
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(8));
}

TEST(ChildProcess, WhatCannotStartIsAnError) {
  EXPECT_THROW(run_child({"/no/such/program", {}, {}}, [] { return true; }), LoadError);
  EXPECT_EQ(find_program("no-such-program-anywhere"), std::nullopt);
  EXPECT_TRUE(find_program("sh").value_or("").ends_with("/sh"));
}

TEST(ChildProcess, AnExceptionEndsTheChild) {
  EXPECT_THROW(shell("exec sleep 60", []() -> bool { throw LoadError("x", "y"); }), LoadError);
}

}  // namespace
}  // namespace quire::hub
