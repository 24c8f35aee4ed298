#include "quire/apps/config_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "quire/apps/commands.h"
#include "quire/base/error.h"

namespace quire::apps {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class ConfigFile : public ::testing::Test {
 protected:
  ConfigFile() : serve_(*app_.add_subcommand("serve", "")), action_(add_serve(serve_)) {}

  std::vector<std::string> words(const std::string& yaml,
                                 const std::vector<std::string>& given = {"serve"}) {
    return config_words(yaml, "x.yaml", serve_, given);
  }
  std::string error_of(const std::string& yaml) {
    try {
      words(yaml);
    } catch (const LoadError& error) {
      return error.what();
    }
    return "no error";
  }

  CLI::App app_;
  CLI::App& serve_;
  Action action_;
};

TEST_F(ConfigFile, KeysAreOptionsWithDashOrUnderscore) {
  EXPECT_THAT(words("max_model_len: 4096\nblock-size: 32\n"),
              ElementsAre("--max-model-len=4096", "--block-size=32"));
  EXPECT_THAT(words("model: a/b.gguf\ngpu_memory_utilization: 0.8"),
              ElementsAre("--model=a/b.gguf", "--gpu-memory-utilization=0.8"));
  EXPECT_THAT(words(""), IsEmpty());
}

TEST_F(ConfigFile, FlagsAreTrueOrFalse) {
  EXPECT_THAT(words("enable_chunked_prefill: true\ndisable_log_stats: true"),
              ElementsAre("--enable-chunked-prefill", "--disable-log-stats"));
  EXPECT_THAT(words("enable_chunked_prefill: false\nenforce_eager: false"),
              ElementsAre("--no-enable-chunked-prefill"));
  EXPECT_THAT(error_of("enforce_eager: 3"), HasSubstr("true or false"));
}

TEST_F(ConfigFile, ListsAreSeveralValues) {
  EXPECT_THAT(words("api_key: [a, b]"), ElementsAre("--api-key", "a", "b"));
}

TEST_F(ConfigFile, TheCommandLineGoesFirst) {
  const std::string yaml = "max_model_len: 4096\nmodel: m\nenable_chunked_prefill: false\n";
  EXPECT_THAT(words(yaml, {"serve", "--max-model-len=8"}),
              ElementsAre("--model=m", "--no-enable-chunked-prefill"));
  EXPECT_THAT(words(yaml, {"serve", "other", "--max-model-len", "8"}),
              ElementsAre("--no-enable-chunked-prefill"));
  EXPECT_THAT(words(yaml, {"serve", "-m", "other", "--enable-chunked-prefill"}),
              ElementsAre("--max-model-len=4096"));
}

TEST_F(ConfigFile, WhatCannotBeIsNamed) {
  EXPECT_THAT(error_of("max_modl_len: 4"), HasSubstr("max_modl_len"));
  EXPECT_THAT(error_of("max_model_len: {a: 1}"), HasSubstr("max_model_len"));
  EXPECT_THAT(error_of("a: [1"), HasSubstr("x.yaml: line"));
  EXPECT_THAT(error_of("[1, 2]"), HasSubstr("keys and values"));
  EXPECT_THAT(error_of("config: y.yaml"), HasSubstr("config"));
}

TEST_F(ConfigFile, WordsWithoutAFileStayAsTheyAre) {
  EXPECT_THAT(with_config_file({"serve", "--port", "1"}, app_),
              ElementsAre("serve", "--port", "1"));
  EXPECT_THROW(with_config_file({"serve", "--config", "/no/such.yaml"}, app_), LoadError);
}

}  // namespace
}  // namespace quire::apps
