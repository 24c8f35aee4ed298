#include "quire/text/chat_template/methods.h"

#include <fmt/format.h>

#include <algorithm>

#include "quire/text/chat_template/filters.h"
#include "quire/text/chat_template/operators.h"

namespace quire::text::jinja {
namespace {

// ---- dict

Datum view_of(Runtime& runtime, const Datum& dict, DictViewObject::Part part) {
  return Datum(
      Type::kDictView,
      runtime.heap().make<DictViewObject>(0, Ref<DictObject>(&dict.as<DictObject>()), part).get());
}

Datum dict_items(Runtime& runtime, const Datum& self, const Arguments& arguments) {
  bind("items", arguments, {});
  return view_of(runtime, self, DictViewObject::Part::kItems);
}

Datum dict_keys(Runtime& runtime, const Datum& self, const Arguments& arguments) {
  bind("keys", arguments, {});
  return view_of(runtime, self, DictViewObject::Part::kKeys);
}

Datum dict_values(Runtime& runtime, const Datum& self, const Arguments& arguments) {
  bind("values", arguments, {});
  return view_of(runtime, self, DictViewObject::Part::kValues);
}

Datum dict_get(Runtime& runtime, const Datum& self, const Arguments& arguments) {
  if (!arguments.keyword.empty()) throw RenderError("get() takes no keyword arguments");
  const auto bound = bind("get", arguments, {"key", "default"});
  if (bound[0] == nullptr) throw RenderError("get expected at least 1 argument, got 0");
  if (const Datum* found = dict_find(runtime, self.as<DictObject>(), *bound[0])) return *found;
  return bound[1] == nullptr ? Datum::none() : *bound[1];
}

Datum dict_copy(Runtime& runtime, const Datum& self, const Arguments& arguments) {
  bind("copy", arguments, {});
  const Ref<DictObject> copy = runtime.new_dict();
  for (const auto& [key, value] : self.as<DictObject>().entries) {
    runtime.meter().step();
    dict_set(runtime, *copy, key, value);
  }
  return runtime.dict(copy);
}

constexpr Method kDictMethods[] = {{"items", dict_items},
                                   {"keys", dict_keys},
                                   {"values", dict_values},
                                   {"get", dict_get},
                                   {"copy", dict_copy}};

// ---- list and tuple

Datum list_index(Runtime& runtime, const Datum& self, const Arguments& arguments) {
  const auto bound = bind("index", arguments, {"value", "start", "stop"});
  if (bound[0] == nullptr) throw RenderError("index expected at least 1 argument, got 0");
  const auto& items = self.as<ListObject>().items;
  const auto size = static_cast<int64_t>(items.size());
  const auto clamp = [&](int64_t at) {
    return std::clamp<int64_t>(at < 0 ? at + size : at, 0, size);
  };
  const int64_t stop = clamp(integer_or(bound[2], size));
  for (int64_t i = clamp(integer_or(bound[1], 0)); i < stop; ++i) {
    if (is_equal(runtime, items[static_cast<size_t>(i)], *bound[0])) return Datum::integer(i);
  }
  throw RenderError("the value is not in the list");
}

Datum list_count(Runtime& runtime, const Datum& self, const Arguments& arguments) {
  const auto bound = bind("count", arguments, {"value"});
  if (bound[0] == nullptr) throw RenderError("count() takes exactly one argument (0 given)");
  const auto& items = self.as<ListObject>().items;
  return Datum::integer(std::count_if(items.begin(), items.end(), [&](const Datum& item) {
    return is_equal(runtime, item, *bound[0]);
  }));
}

Datum list_copy(Runtime& runtime, const Datum& self, const Arguments& arguments) {
  bind("copy", arguments, {});
  return runtime.list(self.as<ListObject>().items);
}

constexpr Method kListMethods[] = {
    {"index", list_index}, {"count", list_count}, {"copy", list_copy}};

// ---- cycler

Datum cycler_next(Runtime&, const Datum& self, const Arguments& arguments) {
  bind("next", arguments, {});
  auto& cycler = self.as<CyclerObject>();
  Datum current = cycler.items[cycler.position];
  cycler.position = (cycler.position + 1) % cycler.items.size();
  return current;
}

Datum cycler_reset(Runtime&, const Datum& self, const Arguments& arguments) {
  bind("reset", arguments, {});
  self.as<CyclerObject>().position = 0;
  return Datum::none();
}

constexpr Method kCyclerMethods[] = {{"next", cycler_next}, {"reset", cycler_reset}};

const Method* find_in(std::span<const Method> table, std::string_view name) {
  const auto found = std::find_if(table.begin(), table.end(),
                                  [&](const Method& method) { return method.name == name; });
  return found == table.end() ? nullptr : &*found;
}

bool is_one_of(std::string_view name, std::initializer_list<std::string_view> names) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

}  // namespace

const Method* find_method(const Datum& object, std::string_view name) {
  switch (object.type()) {
    case Type::kString:
      if (const Method* method = find_in(string_methods(), name)) return method;
      return find_in(string_class_methods(), name);
    case Type::kDict:
      return find_in(kDictMethods, name);
    case Type::kList:
      return find_in(kListMethods, name);
    case Type::kTuple:
      return name == "copy" ? nullptr : find_in(kListMethods, name);
    case Type::kCycler:
      return find_in(kCyclerMethods, name);
    default:
      return nullptr;
  }
}

bool is_mutating_method(const Datum& object, std::string_view name) {
  if (object.is(Type::kDict)) {
    return is_one_of(name, {"clear", "pop", "popitem", "setdefault", "update"});
  }
  return object.is(Type::kList) && is_one_of(name, {"append", "clear", "pop", "reverse", "insert",
                                                    "sort", "extend", "remove"});
}

}  // namespace quire::text::jinja
