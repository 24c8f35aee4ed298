#include "quire/text/chat_template/sequence.h"

#include <fmt/format.h>

#include "quire/text/chat_template/unicode.h"

namespace quire::text::jinja {
namespace {

bool next_of_view(Runtime& runtime, const DictViewObject& view, size_t position, Datum& item) {
  const auto& entries = view.dict->entries;
  if (position >= entries.size()) return false;
  switch (view.part) {
    case DictViewObject::Part::kKeys:
      item = entries[position].first;
      break;
    case DictViewObject::Part::kValues:
      item = entries[position].second;
      break;
    case DictViewObject::Part::kItems:
      item = runtime.tuple({entries[position].first, entries[position].second});
      break;
  }
  return true;
}

}  // namespace

bool is_iterable(const Datum& value) {
  switch (value.type()) {
    case Type::kUndefined:
    case Type::kString:
    case Type::kList:
    case Type::kTuple:
    case Type::kDict:
    case Type::kRange:
    case Type::kDictView:
    case Type::kIterator:
      return true;
    default:
      return false;
  }
}

Cursor::Cursor(Runtime& runtime, Datum iterable)
    : runtime_(runtime), iterable_(std::move(iterable)) {
  if (!is_iterable(iterable_)) {
    throw RenderError(fmt::format("'{}' object is not iterable", type_name(iterable_)));
  }
}

bool Cursor::next(Datum& item) {
  runtime_.meter().step();
  switch (iterable_.type()) {
    case Type::kList:
    case Type::kTuple: {
      const auto& items = iterable_.as<ListObject>().items;
      if (position_ >= items.size()) return false;
      item = items[position_++];
      return true;
    }
    case Type::kDict: {
      const auto& entries = iterable_.as<DictObject>().entries;
      if (position_ >= entries.size()) return false;
      item = entries[position_++].first;
      return true;
    }
    case Type::kString: {
      const std::string_view text = text_of(iterable_);
      if (position_ >= text.size()) return false;
      const size_t begin = position_;
      decode_utf8(text, position_);
      item = runtime_.string(std::string(text.substr(begin, position_ - begin)));
      return true;
    }
    case Type::kRange: {
      const auto& range = iterable_.as<RangeObject>();
      if (static_cast<int64_t>(position_) >= range.length) return false;
      item = Datum::integer(range.start + static_cast<int64_t>(position_++) * range.step);
      return true;
    }
    case Type::kDictView:
      return next_of_view(runtime_, iterable_.as<DictViewObject>(), position_++, item);
    case Type::kIterator: {
      auto& iterator = iterable_.as<IteratorObject>();
      if (iterator.next >= iterator.items.size()) return false;
      item = iterator.items[iterator.next++];
      return true;
    }
    default:
      return false;
  }
}

std::vector<Datum> to_vector(Runtime& runtime, const Datum& iterable) {
  std::vector<Datum> items;
  Cursor cursor(runtime, iterable);
  for (Datum item; cursor.next(item);) items.push_back(item);
  return items;
}

}  // namespace quire::text::jinja
