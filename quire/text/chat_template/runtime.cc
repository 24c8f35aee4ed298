#include "quire/text/chat_template/runtime.h"

#include <fmt/format.h>

#include "quire/text/chat_template/operators.h"
#include "quire/text/chat_template/text_form.h"
#include "quire/text/chat_template/unicode.h"

namespace quire::text::jinja {
namespace {

constexpr size_t kIndexFrom = 12;  // entries from which a dict's string keys are indexed

void check_hashable(const Datum& key) {
  switch (key.type()) {
    case Type::kList:
    case Type::kDict:
      throw RenderError(fmt::format("unhashable type: '{}'", type_name(key)));
    case Type::kTuple:
      for (const Datum& item : key.as<ListObject>().items) check_hashable(item);
      break;
    default:
      break;
  }
}

void add_to_index(Runtime& runtime, DictObject& dict, size_t position) {
  const Datum& key = dict.entries[position].first;
  if (!key.is_string()) return;
  runtime.heap().grow(dict, 48);
  dict.index.emplace(text_of(key), static_cast<uint32_t>(position));
}

/// How messages of undefined attributes call `object`.
std::string_view owner_name(const Datum& object) {
  switch (object.type()) {
    case Type::kNone:
      return "None";
    case Type::kBool:
      return "bool object";
    case Type::kInt:
      return "int object";
    case Type::kFloat:
      return "float object";
    case Type::kString:
      return "str object";
    case Type::kList:
      return "list object";
    case Type::kTuple:
      return "tuple object";
    case Type::kDict:
      return "dict object";
    case Type::kNamespace:
      return "jinja2.utils.Namespace object";
    case Type::kLoop:
      return "jinja2.runtime.LoopContext object";
    case Type::kMacro:
      return "jinja2.runtime.Macro object";
    case Type::kIterator:
      return "generator object";
    default:
      return "object";
  }
}

}  // namespace

const Datum* Arguments::find(std::string_view name) const {
  for (const auto& [key, value] : keyword) {
    if (key == name) return &value;
  }
  return nullptr;
}

std::string UndefinedObject::message() const {
  switch (why) {
    case Why::kName:
      return fmt::format("'{}' is undefined", subject);
    case Why::kAttribute:
      return fmt::format("'{}' has no attribute '{}'", owner, subject);
    case Why::kElement:
      return fmt::format("{} has no element {}", owner, subject);
    case Why::kHint:
      return subject;
  }
  return subject;
}

Datum Runtime::string(std::string text, bool markup) {
  const size_t bytes = text.size();
  meter_.step_bytes(bytes);
  return Datum(Type::kString, heap_.make<StringObject>(bytes, std::move(text), markup).get());
}

Datum Runtime::borrowed_string(std::string_view text) {
  return Datum(Type::kString, heap_.make<StringObject>(0, StringObject::Borrowed{}, text).get());
}

Datum Runtime::sequence(Type type, std::vector<Datum> items) {
  const size_t bytes = items.size() * sizeof(Datum);
  meter_.step(1 + static_cast<int64_t>(items.size() / 8));
  return Datum(type, heap_.make<ListObject>(bytes, std::move(items)).get());
}

Datum Runtime::iterator(std::vector<Datum> items) {
  const size_t bytes = items.size() * sizeof(Datum);
  return Datum(Type::kIterator, heap_.make<IteratorObject>(bytes, std::move(items)).get());
}

Datum Runtime::range(int64_t start, int64_t stop, int64_t step, int64_t length) {
  return Datum(Type::kRange, heap_.make<RangeObject>(0, start, stop, step, length).get());
}

Datum Runtime::from_value(const Value& value) {
  meter_.step();
  switch (value.kind()) {
    case Value::Kind::kNone:
      return Datum::none();
    case Value::Kind::kBool:
      return Datum::boolean(value.as_bool());
    case Value::Kind::kInt:
      return Datum::integer(value.as_int());
    case Value::Kind::kFloat:
      return Datum::real(value.as_float());
    case Value::Kind::kString:
      return borrowed_string(value.as_string());
    case Value::Kind::kList: {
      const DepthGuard guard(meter_);
      meter_.require(value.as_list().size() * sizeof(Datum));
      std::vector<Datum> items;
      items.reserve(value.as_list().size());
      for (const Value& item : value.as_list()) items.push_back(from_value(item));
      return list(std::move(items));
    }
    case Value::Kind::kDict: {
      const DepthGuard guard(meter_);
      Ref<DictObject> result = new_dict();
      for (const auto& [key, item] : value.as_dict()) {
        dict_set(*this, *result, borrowed_string(key), from_value(item));
      }
      return dict(result);
    }
  }
  return Datum::none();
}

Datum Runtime::undefined_name(std::string_view name) {
  return Datum(Type::kUndefined,
               heap_
                   .make<UndefinedObject>(name.size(), UndefinedObject::Why::kName,
                                          std::string(name), std::string_view())
                   .get());
}

Datum Runtime::undefined_hint(std::string message) {
  const size_t bytes = message.size();
  return Datum(Type::kUndefined, heap_
                                     .make<UndefinedObject>(bytes, UndefinedObject::Why::kHint,
                                                            std::move(message), std::string_view())
                                     .get());
}

Datum Runtime::undefined_attribute(const Datum& object, std::string_view name) {
  return Datum(Type::kUndefined,
               heap_
                   .make<UndefinedObject>(name.size(), UndefinedObject::Why::kAttribute,
                                          std::string(name), owner_name(object))
                   .get());
}

Datum Runtime::undefined_member(const Datum& object, const Datum& key) {
  if (key.is_string()) return undefined_attribute(object, text_of(key));
  std::string shown = key.is_number() ? to_repr(*this, key) : std::string(type_name(key));
  return Datum(Type::kUndefined,
               heap_
                   .make<UndefinedObject>(shown.size(), UndefinedObject::Why::kElement,
                                          std::move(shown), owner_name(object))
                   .get());
}

size_t string_length(const Datum& string) {
  auto& object = string.as<StringObject>();
  if (object.length < 0) object.length = static_cast<int64_t>(count_code_points(object.text));
  return static_cast<size_t>(object.length);
}

const Datum* dict_find(Runtime& runtime, const DictObject& dict, std::string_view key) {
  if (!dict.index.empty()) {
    const auto found = dict.index.find(key);
    return found == dict.index.end() ? nullptr : &dict.entries[found->second].second;
  }
  runtime.meter().step(static_cast<int64_t>(dict.entries.size() / 8));
  for (const auto& [candidate, value] : dict.entries) {
    if (candidate.is_string() && text_of(candidate) == key) return &value;
  }
  return nullptr;
}

const Datum* dict_find(Runtime& runtime, const DictObject& dict, const Datum& key) {
  if (key.is_string()) return dict_find(runtime, dict, text_of(key));
  check_hashable(key);
  for (const auto& [candidate, value] : dict.entries) {
    runtime.meter().step();
    if (!candidate.is_string() && is_equal(runtime, candidate, key)) return &value;
  }
  return nullptr;
}

void dict_set(Runtime& runtime, DictObject& dict, Datum key, Datum value) {
  if (const Datum* found = dict_find(runtime, dict, key)) {
    *const_cast<Datum*>(found) = std::move(value);
    return;
  }
  runtime.heap().grow(dict, 2 * sizeof(Datum));
  dict.entries.emplace_back(std::move(key), std::move(value));
  if (dict.entries.size() == kIndexFrom) {
    for (size_t i = 0; i < dict.entries.size(); ++i) add_to_index(runtime, dict, i);
  } else if (dict.entries.size() > kIndexFrom) {
    add_to_index(runtime, dict, dict.entries.size() - 1);
  }
}

std::string_view type_name(const Datum& datum) {
  switch (datum.type()) {
    case Type::kMissing:
    case Type::kUndefined:
      return "Undefined";
    case Type::kNone:
      return "NoneType";
    case Type::kBool:
      return "bool";
    case Type::kInt:
      return "int";
    case Type::kFloat:
      return "float";
    case Type::kBuiltin:
      return "function";
    case Type::kString:
      return is_markup(datum) ? "Markup" : "str";
    case Type::kList:
      return "list";
    case Type::kTuple:
      return "tuple";
    case Type::kDict:
      return "dict";
    case Type::kRange:
      return "range";
    case Type::kDictView:
      switch (datum.as<DictViewObject>().part) {
        case DictViewObject::Part::kKeys:
          return "dict_keys";
        case DictViewObject::Part::kValues:
          return "dict_values";
        case DictViewObject::Part::kItems:
          return "dict_items";
      }
      return "dict_items";
    case Type::kIterator:
      return "generator";
    case Type::kNamespace:
      return "Namespace";
    case Type::kMacro:
      return "Macro";
    case Type::kMethod:
      return "builtin_function_or_method";
    case Type::kLoop:
      return "LoopContext";
    case Type::kCycler:
      return "Cycler";
    case Type::kJoiner:
      return "Joiner";
  }
  return "object";
}

void check_defined(const Datum& datum) {
  if (datum.is_undefined()) throw RenderError(datum.as<UndefinedObject>().message());
}

}  // namespace quire::text::jinja
