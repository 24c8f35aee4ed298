#include "quire/text/chat_template/operators.h"

#include <fmt/format.h>

#include <algorithm>

#include "quire/text/chat_template/sequence.h"
#include "quire/text/chat_template/text_split.h"

namespace quire::text::jinja {
namespace {

/// Exact for every int64 and double where long double has 64 bits of mantissa or more.
long double exact(const Datum& number) {
  return number.is(Type::kFloat) ? static_cast<long double>(number.as_float())
                                 : static_cast<long double>(number.as_int());
}

bool same_or_equal(Runtime& runtime, const Datum& left, const Datum& right) {
  return left.same_as(right) || is_equal(runtime, left, right);
}

bool equal_dicts(Runtime& runtime, const DictObject& left, const DictObject& right) {
  if (left.entries.size() != right.entries.size()) return false;
  return std::all_of(left.entries.begin(), left.entries.end(), [&](const auto& entry) {
    const Datum* other = dict_find(runtime, right, entry.first);
    return other != nullptr && same_or_equal(runtime, entry.second, *other);
  });
}

bool equal_ranges(const RangeObject& left, const RangeObject& right) {
  if (left.length != right.length) return false;
  if (left.length == 0) return true;
  return left.start == right.start && (left.length == 1 || left.step == right.step);
}

[[noreturn]] void throw_no_order(const Datum& left, const Datum& right) {
  check_defined(left);
  check_defined(right);
  throw RenderError(fmt::format("'<' not supported between instances of '{}' and '{}'",
                                type_name(left), type_name(right)));
}

bool less_sequences(Runtime& runtime, const Datum& left, const Datum& right) {
  const DepthGuard guard(runtime.meter());
  const auto& a = left.as<ListObject>().items;
  const auto& b = right.as<ListObject>().items;
  for (size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    if (!same_or_equal(runtime, a[i], b[i])) return is_less(runtime, a[i], b[i]);
  }
  return a.size() < b.size();
}

bool is_less_or_equal(Runtime& runtime, const Datum& left, const Datum& right) {
  if (left.is_number() && right.is_number()) return exact(left) <= exact(right);
  return is_less(runtime, left, right) || is_equal(runtime, left, right);
}

}  // namespace

bool Datum::same_as(const Datum& other) const {
  if (type_ != other.type_) return false;
  if (is_object()) return word_.object == other.word_.object;
  if (type_ == Type::kFloat) return word_.floating == other.word_.floating;
  if (type_ == Type::kBuiltin) return word_.builtin == other.word_.builtin;
  return type_ == Type::kNone || word_.integer == other.word_.integer;
}

bool is_true(const Datum& value) {
  switch (value.type()) {
    case Type::kMissing:
    case Type::kUndefined:
    case Type::kNone:
      return false;
    case Type::kBool:
    case Type::kInt:
      return value.as_int() != 0;
    case Type::kFloat:
      return value.as_float() != 0;
    case Type::kString:
      return !text_of(value).empty();
    case Type::kList:
    case Type::kTuple:
      return !value.as<ListObject>().items.empty();
    case Type::kDict:
      return !value.as<DictObject>().entries.empty();
    case Type::kRange:
      return value.as<RangeObject>().length != 0;
    case Type::kDictView:
      return !value.as<DictViewObject>().dict->entries.empty();
    default:
      return true;
  }
}

bool is_equal(Runtime& runtime, const Datum& left, const Datum& right) {
  runtime.meter().step();
  if (left.is_number() && right.is_number()) return exact(left) == exact(right);
  if (left.type() != right.type()) return false;
  switch (left.type()) {
    case Type::kString: {
      const std::string_view a = text_of(left);
      const std::string_view b = text_of(right);
      if (a.size() != b.size()) return false;
      runtime.meter().step_bytes(a.size());
      return a == b;
    }
    case Type::kList:
    case Type::kTuple: {
      const DepthGuard guard(runtime.meter());
      const auto& a = left.as<ListObject>().items;
      const auto& b = right.as<ListObject>().items;
      return std::equal(
          a.begin(), a.end(), b.begin(), b.end(),
          [&](const Datum& x, const Datum& y) { return same_or_equal(runtime, x, y); });
    }
    case Type::kDict: {
      const DepthGuard guard(runtime.meter());
      return equal_dicts(runtime, left.as<DictObject>(), right.as<DictObject>());
    }
    case Type::kRange:
      return equal_ranges(left.as<RangeObject>(), right.as<RangeObject>());
    case Type::kUndefined:
      return true;
    default:
      return left.same_as(right);
  }
}

bool is_less(Runtime& runtime, const Datum& left, const Datum& right) {
  runtime.meter().step();
  if (left.is_number() && right.is_number()) return exact(left) < exact(right);
  if (left.is_string() && right.is_string()) {
    runtime.meter().step_bytes(std::min(text_of(left).size(), text_of(right).size()));
    return text_of(left) < text_of(right);  // bytes of UTF-8 order as code points do
  }
  if (left.type() == right.type() && left.is_sequence()) {
    return less_sequences(runtime, left, right);
  }
  throw_no_order(left, right);
}

bool contains(Runtime& runtime, const Datum& container, const Datum& item) {
  if (container.is_string()) {
    check_defined(item);
    if (!item.is_string()) {
      throw RenderError(
          fmt::format("'in <string>' requires string as left operand, not {}", type_name(item)));
    }
    charge_search(runtime, text_of(container), text_of(item));
    return text_of(container).find(text_of(item)) != std::string_view::npos;
  }
  if (container.is(Type::kDict)) {
    return dict_find(runtime, container.as<DictObject>(), item) != nullptr;
  }
  if (!is_iterable(container)) {
    throw RenderError(fmt::format("argument of type '{}' is not iterable", type_name(container)));
  }
  Cursor cursor(runtime, container);
  for (Datum candidate; cursor.next(candidate);) {
    if (same_or_equal(runtime, candidate, item)) return true;
  }
  return false;
}

bool compare(Runtime& runtime, CompareOp op, const Datum& left, const Datum& right) {
  switch (op) {
    case CompareOp::kEq:
      return is_equal(runtime, left, right);
    case CompareOp::kNe:
      return !is_equal(runtime, left, right);
    case CompareOp::kLt:
      return is_less(runtime, left, right);
    case CompareOp::kLe:
      return is_less_or_equal(runtime, left, right);
    case CompareOp::kGt:
      return is_less(runtime, right, left);
    case CompareOp::kGe:
      return is_less_or_equal(runtime, right, left);
    case CompareOp::kIn:
      return contains(runtime, right, left);
    case CompareOp::kNotIn:
      return !contains(runtime, right, left);
  }
  return false;
}

int64_t length_of(const Datum& value) {
  switch (value.type()) {
    case Type::kUndefined:
      return 0;
    case Type::kString:
      return static_cast<int64_t>(string_length(value));
    case Type::kList:
    case Type::kTuple:
      return static_cast<int64_t>(value.as<ListObject>().items.size());
    case Type::kDict:
      return static_cast<int64_t>(value.as<DictObject>().entries.size());
    case Type::kRange:
      return value.as<RangeObject>().length;
    case Type::kDictView:
      return static_cast<int64_t>(value.as<DictViewObject>().dict->entries.size());
    default:
      throw RenderError(fmt::format("object of type '{}' has no len()", type_name(value)));
  }
}

}  // namespace quire::text::jinja
