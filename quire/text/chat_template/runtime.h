// Runtime: what every operation of one rendering shares: the meter, the heap, and the making of
// values.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "quire/text/chat_template/heap.h"
#include "quire/text/chat_template/objects.h"
#include "quire/text/chat_template/render_error.h"

namespace quire::text::jinja {

/// The arguments of a call.
struct Arguments {
  std::vector<Datum> positional;
  std::vector<std::pair<std::string_view, Datum>> keyword;
  std::vector<Datum> kept;  // what holds the names in `keyword` that the template's source does not

  const Datum* find(std::string_view name) const;
};

/// A global function.
struct Builtin {
  std::string_view name;
  Datum (*call)(class Runtime&, const Arguments&);
};

class Runtime {
 public:
  explicit Runtime(const RenderBudget& budget)
      : meter_(budget), heap_(meter_), now_unix_s_(budget.now_unix_s) {}

  Meter& meter() { return meter_; }
  Heap& heap() { return heap_; }
  std::optional<int64_t> now_unix_s() const { return now_unix_s_; }

  Datum string(std::string text, bool markup = false);
  /// `text` outlives the rendering.
  Datum borrowed_string(std::string_view text);
  Datum list(std::vector<Datum> items) { return sequence(Type::kList, std::move(items)); }
  Datum tuple(std::vector<Datum> items) { return sequence(Type::kTuple, std::move(items)); }
  Datum iterator(std::vector<Datum> items);
  Datum range(int64_t start, int64_t stop, int64_t step, int64_t length);
  Datum dict(const Ref<DictObject>& dict) { return Datum(Type::kDict, dict.get()); }
  Ref<DictObject> new_dict() { return heap_.make<DictObject>(0); }
  /// Copies a request's value; strings are borrowed.
  Datum from_value(const Value& value);

  Datum undefined_name(std::string_view name);
  Datum undefined_hint(std::string message);
  /// `key` is no attribute or element of `object`.
  Datum undefined_member(const Datum& object, const Datum& key);
  Datum undefined_attribute(const Datum& object, std::string_view name);

 private:
  Datum sequence(Type type, std::vector<Datum> items);

  Meter meter_;
  Heap heap_;
  std::optional<int64_t> now_unix_s_;
};

inline std::string_view text_of(const Datum& string) {
  return string.as<StringObject>().text;
}
/// Of a string.
inline bool is_markup(const Datum& string) {
  return string.as<StringObject>().markup;
}
/// Code points of a string.
size_t string_length(const Datum& string);

/// The entry under `key`, or null. Throws RenderError for a key that cannot be one.
const Datum* dict_find(Runtime& runtime, const DictObject& dict, const Datum& key);
const Datum* dict_find(Runtime& runtime, const DictObject& dict, std::string_view key);
/// Inserts or replaces.
void dict_set(Runtime& runtime, DictObject& dict, Datum key, Datum value);

/// Python's name of the type ("str"), as in its messages.
std::string_view type_name(const Datum& datum);
/// Throws UndefinedError's message when `datum` is undefined.
void check_defined(const Datum& datum);

}  // namespace quire::text::jinja
