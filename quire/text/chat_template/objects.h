// The kinds of Object a template can hold: strings, containers, iterators, functions.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "quire/text/chat_template/datum.h"

namespace quire::text::jinja {

struct Method;

/// Owns its text or borrows it from what outlives the rendering (the request, the template).
struct StringObject : Object {
  struct Borrowed {};
  StringObject(std::string owned, bool is_markup)
      : storage(std::move(owned)), text(storage), markup(is_markup) {}
  StringObject(Borrowed, std::string_view borrowed) : text(borrowed) {}

  std::string storage;
  std::string_view text;
  bool markup = false;  // passed through `safe` or `escape`
  int64_t length = -1;  // in code points, once counted (only by the rendering that owns it)
};

/// A list or a tuple; groupby's pairs are tuples whose items are also attributes.
struct ListObject : Object {
  explicit ListObject(std::vector<Datum> values) : items(std::move(values)) {}
  void clear() override { items.clear(); }

  std::vector<Datum> items;
  bool is_group = false;  // attributes `grouper` and `list`
};

/// A dict; keeps the order of insertion.
struct DictObject : Object {
  void clear() override {
    index.clear();
    entries.clear();
  }

  std::vector<std::pair<Datum, Datum>> entries;
  std::unordered_map<std::string_view, uint32_t> index;  // of string keys, once there are many
};

struct RangeObject : Object {
  RangeObject(int64_t first, int64_t end, int64_t by, int64_t count)
      : start(first), stop(end), step(by), length(count) {}
  int64_t start;
  int64_t stop;
  int64_t step;
  int64_t length;
};

struct DictViewObject : Object {
  enum class Part : uint8_t { kKeys, kValues, kItems };
  DictViewObject(Ref<DictObject> of, Part which) : dict(std::move(of)), part(which) {}
  void clear() override { dict.reset(); }

  Ref<DictObject> dict;
  Part part;
};

/// Gives each item once, as a Python generator does; the items are computed beforehand.
struct IteratorObject : Object {
  explicit IteratorObject(std::vector<Datum> values) : items(std::move(values)) {}
  void clear() override { items.clear(); }

  std::vector<Datum> items;
  size_t next = 0;
};

struct NamespaceObject : Object {
  explicit NamespaceObject(Ref<DictObject> values) : attributes(std::move(values)) {}
  void clear() override { attributes.reset(); }

  Ref<DictObject> attributes;
};

/// Why a value is undefined; the message is put together when it is needed.
struct UndefinedObject : Object {
  enum class Why : uint8_t { kName, kAttribute, kElement, kHint };
  UndefinedObject(Why reason, std::string what, std::string_view owner_type)
      : why(reason), subject(std::move(what)), owner(owner_type) {}
  std::string message() const;

  Why why;
  std::string subject;     // the name, attribute or element; the whole message for kHint
  std::string_view owner;  // how the message calls the object that lacks it
};

struct MethodObject : Object {
  MethodObject(Datum self, const Method* which) : receiver(std::move(self)), method(which) {}
  void clear() override { receiver = Datum(); }

  Datum receiver;
  const Method* method;
};

struct CyclerObject : Object {
  explicit CyclerObject(std::vector<Datum> values) : items(std::move(values)) {}
  void clear() override { items.clear(); }

  std::vector<Datum> items;
  size_t position = 0;
};

struct JoinerObject : Object {
  explicit JoinerObject(Datum between) : separator(std::move(between)) {}
  void clear() override { separator = Datum(); }

  Datum separator;
  bool used = false;
};

}  // namespace quire::text::jinja
