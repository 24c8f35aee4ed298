#include "quire/hub/catalogue.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>
#include <boost/json.hpp>

#include "quire/base/check.h"
#include "quire/base/error.h"
#include "quire/hub/catalogue_json.h"

namespace quire::hub {
namespace {

namespace json = boost::json;

/// One model's object; every accessor throws LoadError naming file, model and key.
class Fields {
 public:
  Fields(const json::object& object, std::string_view where, std::string label)
      : object_(object), where_(where), label_(std::move(label)) {}

  std::string text(const char* key) const {
    const json::value& value = get(key);
    if (!value.is_string() || value.as_string().empty()) fail(key, "a text");
    return std::string(value.as_string());
  }
  /// A name that is safe as one component of a path.
  std::string file_name(const char* key) const {
    std::string name = text(key);
    if (name.starts_with('.') || name.find('/') != std::string::npos) fail(key, "a file name");
    return name;
  }
  std::string sha256(const char* key) const {
    std::string digest = text(key);
    if (digest.size() != 64 || digest.find_first_not_of("0123456789abcdef") != std::string::npos) {
      fail(key, "64 lower-case hexadecimal digits");
    }
    return digest;
  }
  int64_t size(const char* key) const {
    const json::value& value = get(key);
    if (!value.is_int64() || value.as_int64() <= 0) fail(key, "a number of bytes");
    return value.as_int64();
  }
  bool flag(const char* key) const {
    const json::value* value = object_.if_contains(key);
    if (value != nullptr && !value->is_bool()) fail(key, "true or false");
    return value != nullptr && value->as_bool();
  }
  Fields object(const char* key) const {
    const json::value& value = get(key);
    if (!value.is_object()) fail(key, "an object");
    return {value.as_object(), where_, fmt::format("{}.{}", label_, key)};
  }

 private:
  const json::value& get(const char* key) const {
    const json::value* value = object_.if_contains(key);
    if (value == nullptr) throw LoadError(where_, label_ + "." + key, "a value", "no such key");
    return *value;
  }
  [[noreturn]] void fail(const char* key, std::string_view expected) const {
    throw LoadError(where_, label_ + "." + key, expected,
                    json::serialize(*object_.if_contains(key)));
  }

  const json::object& object_;
  std::string_view where_;
  std::string label_;
};

CatalogueEntry read_entry(const Fields& fields) {
  const Fields pip = fields.object("pip");
  return {
      .name = fields.text("name"),
      .title = fields.text("title"),
      .license = fields.text("license"),
      .is_default = fields.flag("default"),
      .file = fields.file_name("file"),
      .bytes = fields.size("bytes"),
      .sha256 = fields.sha256("sha256"),
      .pip_package = pip.file_name("package"),
      .pip_version = pip.file_name("version"),
      .wheel_bytes = pip.size("wheel_bytes"),
      .pip_member = pip.text("member"),
  };
}

}  // namespace

Catalogue Catalogue::built_in() {
  return parse(catalogue_json(), "quire/hub/catalogue.json");
}

Catalogue Catalogue::parse(std::string_view text, std::string_view where) {
  json::error_code error;
  const json::value root = json::parse({text.data(), text.size()}, error);
  if (error) throw LoadError(where, "", "JSON", error.message());
  const json::object* object = root.if_object();
  const json::value* models = object != nullptr ? object->if_contains("models") : nullptr;
  if (models == nullptr || !models->is_array()) {
    throw LoadError(where, "models", "a list", "something else");
  }
  Catalogue catalogue;
  for (const json::value& model : models->as_array()) {
    const auto label = fmt::format("models[{}]", catalogue.entries_.size());
    if (!model.is_object()) throw LoadError(where, label, "an object", json::serialize(model));
    CatalogueEntry entry = read_entry({model.as_object(), where, label});
    if (catalogue.find(entry.name) != nullptr) {
      throw LoadError(where, label + ".name", "a new name", entry.name);
    }
    catalogue.entries_.push_back(std::move(entry));
  }
  const auto defaults = std::ranges::count_if(catalogue.entries_, &CatalogueEntry::is_default);
  if (defaults != 1) {
    throw LoadError(where, "models", "one default", fmt::format("{}", defaults));
  }
  return catalogue;
}

const CatalogueEntry* Catalogue::find(std::string_view name) const {
  const auto entry = std::ranges::find(entries_, name, &CatalogueEntry::name);
  return entry != entries_.end() ? &*entry : nullptr;
}

const CatalogueEntry& Catalogue::default_entry() const {
  const auto entry = std::ranges::find_if(entries_, &CatalogueEntry::is_default);
  QUIRE_CHECK(entry != entries_.end());
  return *entry;
}

std::string Catalogue::names() const {
  std::string all;
  for (const CatalogueEntry& entry : entries_) {
    if (!all.empty()) all += ", ";
    all += entry.name;
    if (entry.is_default) all += " (default)";
  }
  return all;
}

}  // namespace quire::hub
