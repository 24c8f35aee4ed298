#include "quire/text/chat_template/lookup.h"

#include <fmt/format.h>

#include <algorithm>

#include "quire/text/chat_template/loop.h"
#include "quire/text/chat_template/methods.h"
#include "quire/text/chat_template/unicode.h"

namespace quire::text::jinja {
namespace {

Datum bound_method(Runtime& runtime, const Datum& receiver, const Method* method) {
  return Datum(Type::kMethod, runtime.heap().make<MethodObject>(0, receiver, method).get());
}

/// The attributes Python's numbers have; complex parts and fractions.
bool number_attribute(const Datum& number, std::string_view name, Datum& result) {
  const bool integral = number.is_integral();
  if (name == "real" || (integral && name == "numerator")) {
    result = integral ? Datum::integer(number.as_int()) : number;
  } else if (name == "imag") {
    result = integral ? Datum::integer(0) : Datum::real(0.0);
  } else if (integral && name == "denominator") {
    result = Datum::integer(1);
  } else {
    return false;
  }
  return true;
}

bool is_private(std::string_view name) {
  return name.starts_with("__") && name.ends_with("__");
}

/// The attribute (not the item) `name`; false when there is none.
bool find_attribute(Runtime& runtime, const Datum& object, std::string_view name, Datum& result) {
  if (object.is(Type::kNamespace)) {
    const Datum* found = dict_find(runtime, *object.as<NamespaceObject>().attributes, name);
    if (found != nullptr) result = *found;
    return found != nullptr;
  }
  if (object.is(Type::kLoop)) return loop_attribute(runtime, object, name, result);
  if (object.is(Type::kCycler) && name == "current") {
    const auto& cycler = object.as<CyclerObject>();
    result = cycler.items[cycler.position];
    return true;
  }
  if (object.is(Type::kTuple) && object.as<ListObject>().is_group &&
      (name == "grouper" || name == "list")) {
    result = object.as<ListObject>().items[name == "grouper" ? 0 : 1];
    return true;
  }
  if (object.is_number() && number_attribute(object, name, result)) return true;
  if (object.is(Type::kMacro)) return macro_attribute(runtime, object, name, result);
  if (const Method* method = find_method(object, name)) {
    result = bound_method(runtime, object, method);
    return true;
  }
  if (is_mutating_method(object, name) || is_private(name)) {
    result = runtime.undefined_hint(
        fmt::format("access to attribute '{}' of '{}' object is unsafe.", name, type_name(object)));
    return true;
  }
  return false;
}

Datum code_point_at(Runtime& runtime, const Datum& string, int64_t index) {
  const std::string_view text = text_of(string);
  const auto length = static_cast<int64_t>(string_length(string));
  if (length == static_cast<int64_t>(text.size())) {  // ASCII
    return runtime.string(std::string(1, text[static_cast<size_t>(index)]));
  }
  runtime.meter().step_bytes(text.size());
  const size_t begin = byte_offset(text, static_cast<size_t>(index));
  size_t end = begin;
  decode_utf8(text, end);
  return runtime.string(std::string(text.substr(begin, end - begin)));
}

/// The item at an integer index, negative ones from the end; false when there is none.
bool find_index(Runtime& runtime, const Datum& object, int64_t index, Datum& result) {
  int64_t length = 0;
  switch (object.type()) {
    case Type::kString:
      length = static_cast<int64_t>(string_length(object));
      break;
    case Type::kList:
    case Type::kTuple:
      length = static_cast<int64_t>(object.as<ListObject>().items.size());
      break;
    case Type::kRange:
      length = object.as<RangeObject>().length;
      break;
    default:
      return false;
  }
  if (index < 0) index += length;
  if (index < 0 || index >= length) return false;
  if (object.is_string()) {
    result = code_point_at(runtime, object, index);
  } else if (object.is(Type::kRange)) {
    const auto& range = object.as<RangeObject>();
    result = Datum::integer(range.start + index * range.step);
  } else {
    result = object.as<ListObject>().items[static_cast<size_t>(index)];
  }
  return true;
}

bool is_unhashable(const Datum& key) {
  return key.is(Type::kList) || key.is(Type::kDict);
}

bool find_item(Runtime& runtime, const Datum& object, const Datum& key, Datum& result) {
  if (object.is(Type::kDict)) {
    if (is_unhashable(key)) return false;
    const Datum* found = dict_find(runtime, object.as<DictObject>(), key);
    if (found != nullptr) result = *found;
    return found != nullptr;
  }
  return key.is_integral() && find_index(runtime, object, key.as_int(), result);
}

/// A slice's indices, as Python's slice.indices gives them, and its number of items.
struct SliceBounds {
  int64_t start;
  int64_t stop;
  int64_t step;
  int64_t count;
};

int64_t slice_index(const Datum& value, int64_t fallback, int64_t length, bool backwards) {
  if (value.is_none()) return fallback;
  check_defined(value);
  if (!value.is_integral()) {
    throw RenderError("slice indices must be integers or None or have an __index__ method");
  }
  int64_t index = value.as_int();
  const int64_t lowest = backwards ? -1 : 0;
  const int64_t highest = backwards ? length - 1 : length;
  if (index < 0) {
    index = index < -length ? lowest : index + length;
    return std::max(index, lowest);
  }
  return std::min(index, highest);
}

SliceBounds slice_bounds(const Datum& start, const Datum& stop, const Datum& step, int64_t length) {
  constexpr int64_t kFar = INT64_MAX / 2;  // no sequence is longer, so a longer step is as good
  int64_t by = 1;
  if (!step.is_none()) {
    check_defined(step);
    if (!step.is_integral()) {
      throw RenderError("slice indices must be integers or None or have an __index__ method");
    }
    by = std::clamp(step.as_int(), -kFar, kFar);
  }
  if (by == 0) throw RenderError("slice step cannot be zero");
  const bool backwards = by < 0;
  const int64_t first = slice_index(start, backwards ? length - 1 : 0, length, backwards);
  const int64_t last = slice_index(stop, backwards ? -1 : length, length, backwards);
  const int64_t distance = backwards ? first - last : last - first;
  const int64_t stride = backwards ? -by : by;
  return {first, last, by, distance <= 0 ? 0 : (distance - 1) / stride + 1};
}

Datum slice_string(Runtime& runtime, const Datum& string, const SliceBounds& bounds) {
  const std::string_view text = text_of(string);
  runtime.meter().step_bytes(text.size());
  const bool ascii = string_length(string) == text.size();
  const auto count = static_cast<size_t>(bounds.count);
  if (bounds.step == 1) {
    const auto first = static_cast<size_t>(bounds.start);
    const size_t begin = ascii ? first : byte_offset(text, first);
    const size_t length = ascii ? count : byte_offset(text.substr(begin), count);
    return runtime.string(count == 0 ? std::string() : std::string(text.substr(begin, length)));
  }
  std::vector<size_t> offsets;  // where each code point begins
  if (!ascii) {
    runtime.meter().require(text.size() * sizeof(size_t));
    for (size_t position = 0; position < text.size(); decode_utf8(text, position)) {
      offsets.push_back(position);
    }
  }
  std::string out;
  for (size_t i = 0; i < count; ++i) {
    const auto at = static_cast<size_t>(bounds.start + static_cast<int64_t>(i) * bounds.step);
    const size_t begin = ascii ? at : offsets[at];
    size_t end = begin;
    decode_utf8(text, end);
    out += text.substr(begin, end - begin);
  }
  return runtime.string(std::move(out));
}

Datum slice_list(Runtime& runtime, const Datum& list, const SliceBounds& bounds) {
  const auto& items = list.as<ListObject>().items;
  runtime.meter().require(static_cast<size_t>(bounds.count) * sizeof(Datum));
  std::vector<Datum> out;
  out.reserve(static_cast<size_t>(bounds.count));
  for (int64_t i = 0; i < bounds.count; ++i) {
    out.push_back(items[static_cast<size_t>(bounds.start + i * bounds.step)]);
  }
  return list.is(Type::kList) ? runtime.list(std::move(out)) : runtime.tuple(std::move(out));
}

}  // namespace

Datum get_attribute(Runtime& runtime, const Datum& object, std::string_view name) {
  runtime.meter().step();
  check_defined(object);
  Datum result;
  // A dict is first asked for a method of that name, as Python's getattr is.
  if (find_attribute(runtime, object, name, result)) return result;
  if (object.is(Type::kDict)) {
    if (const Datum* found = dict_find(runtime, object.as<DictObject>(), name)) return *found;
  }
  return runtime.undefined_attribute(object, name);
}

Datum get_item(Runtime& runtime, const Datum& object, const Datum& key) {
  runtime.meter().step();
  check_defined(object);
  Datum result;
  if (find_item(runtime, object, key, result)) return result;
  if (key.is_string() && find_attribute(runtime, object, text_of(key), result)) return result;
  return runtime.undefined_member(object, key);
}

Datum get_slice(Runtime& runtime, const Datum& object, const Datum& start, const Datum& stop,
                const Datum& step) {
  check_defined(object);
  switch (object.type()) {
    case Type::kString:
      return slice_string(
          runtime, object,
          slice_bounds(start, stop, step, static_cast<int64_t>(string_length(object))));
    case Type::kList:
    case Type::kTuple:
      return slice_list(runtime, object,
                        slice_bounds(start, stop, step,
                                     static_cast<int64_t>(object.as<ListObject>().items.size())));
    case Type::kRange: {
      const auto& range = object.as<RangeObject>();
      const SliceBounds bounds = slice_bounds(start, stop, step, range.length);
      // Modulo 2^64: only the end of a range near the limits of int64 can wrap, and it is only ever
      // shown.
      const auto wrap = [](int64_t value) { return static_cast<uint64_t>(value); };
      const auto item_at = [&](int64_t index) {
        return static_cast<int64_t>(wrap(range.start) + wrap(index) * wrap(range.step));
      };
      return runtime.range(item_at(bounds.start), item_at(bounds.stop),
                           static_cast<int64_t>(wrap(range.step) * wrap(bounds.step)),
                           bounds.count);
    }
    default:
      throw RenderError(fmt::format("'{}' object is not subscriptable", type_name(object)));
  }
}

}  // namespace quire::text::jinja
