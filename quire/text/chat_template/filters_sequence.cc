#include <fmt/format.h>

#include <algorithm>

#include "quire/text/chat_template/filters.h"
#include "quire/text/chat_template/lookup.h"
#include "quire/text/chat_template/operators.h"
#include "quire/text/chat_template/sequence.h"
#include "quire/text/chat_template/text_form.h"

namespace quire::text::jinja {
namespace {

Datum length(Runtime&, const Datum& input, const Arguments& arguments) {
  bind("length", arguments, {});
  return Datum::integer(length_of(input));
}

Datum default_filter(Runtime& runtime, const Datum& input, const Arguments& arguments) {
  const auto bound = bind("default", arguments, {"default_value", "boolean"});
  if (!input.is_undefined() && !(truth_or(bound[1], false) && !is_true(input))) return input;
  return bound[0] == nullptr ? runtime.borrowed_string("") : *bound[0];
}

Datum join(Runtime& runtime, const Datum& input, const Arguments& arguments) {
  const auto bound = bind("join", arguments, {"d", "attribute"});
  const std::string separator = bound[0] == nullptr ? "" : to_str(runtime, *bound[0]);
  std::string out;
  bool first = true;
  Cursor cursor(runtime, input);
  for (Datum item; cursor.next(item);) {
    if (bound[1] != nullptr) item = dotted_attribute(runtime, item, *bound[1]);
    if (!first) {
      runtime.meter().require(out.size() + separator.size());
      runtime.meter().step_bytes(separator.size());
      out += separator;
    }
    first = false;
    append_str(runtime, item, out);
  }
  return runtime.string(std::move(out));
}

Datum first(Runtime& runtime, const Datum& input, const Arguments& arguments) {
  bind("first", arguments, {});
  Cursor cursor(runtime, input);
  Datum item;
  if (cursor.next(item)) return item;
  return runtime.undefined_hint("No first item, sequence was empty.");
}

void check_reversible(const Datum& input) {
  if (input.is(Type::kIterator) || !is_iterable(input)) {
    throw RenderError(fmt::format("'{}' object is not reversible", type_name(input)));
  }
}

Datum last(Runtime& runtime, const Datum& input, const Arguments& arguments) {
  bind("last", arguments, {});
  check_reversible(input);
  if (input.is_string() || input.is_sequence()) {
    return length_of(input) == 0 ? runtime.undefined_hint("No last item, sequence was empty.")
                                 : get_item(runtime, input, Datum::integer(-1));
  }
  const std::vector<Datum> items = to_vector(runtime, input);
  return items.empty() ? runtime.undefined_hint("No last item, sequence was empty.") : items.back();
}

Datum list(Runtime& runtime, const Datum& input, const Arguments& arguments) {
  bind("list", arguments, {});
  return runtime.list(to_vector(runtime, input));
}

Datum items(Runtime& runtime, const Datum& input, const Arguments& arguments) {
  bind("items", arguments, {});
  std::vector<Datum> pairs;
  if (input.is(Type::kDict)) {
    for (const auto& [key, value] : input.as<DictObject>().entries) {
      runtime.meter().step();
      pairs.push_back(runtime.tuple({key, value}));
    }
  } else if (!input.is_undefined()) {
    throw RenderError("Can only get item pairs from a mapping.");
  }
  return runtime.iterator(std::move(pairs));
}

Datum reverse(Runtime& runtime, const Datum& input, const Arguments& arguments) {
  bind("reverse", arguments, {});
  if (input.is_string()) {
    return get_slice(runtime, input, Datum::none(), Datum::none(), Datum::integer(-1));
  }
  if (!is_iterable(input)) throw RenderError("argument must be iterable");
  std::vector<Datum> items = to_vector(runtime, input);
  std::reverse(items.begin(), items.end());
  if (input.is(Type::kIterator)) return runtime.list(std::move(items));
  return runtime.iterator(std::move(items));
}

/// Sorts stably by keys; an error among the keys ends it, as in Python.
struct Keyed {
  Datum key;
  Datum item;
};

void sort_keyed(Runtime& runtime, std::vector<Keyed>& keyed, bool descending) {
  std::stable_sort(keyed.begin(), keyed.end(), [&](const Keyed& a, const Keyed& b) {
    return descending ? is_less(runtime, b.key, a.key) : is_less(runtime, a.key, b.key);
  });
}

std::vector<Datum> items_of(std::vector<Keyed> keyed) {
  std::vector<Datum> items;
  items.reserve(keyed.size());
  for (Keyed& entry : keyed) items.push_back(std::move(entry.item));
  return items;
}

/// The keys "a,b" of an item as a tuple.
Datum multi_key(Runtime& runtime, const Datum& item, const Datum* attribute, bool case_sensitive) {
  std::vector<Datum> keys;
  const auto add = [&](const Datum& path) {
    Datum key = dotted_attribute(runtime, item, path);
    keys.push_back(case_sensitive ? key : ignore_case(runtime, key));
  };
  if (attribute != nullptr && attribute->is_string()) {
    std::string_view rest = text_of(*attribute);
    for (size_t comma = 0; comma != std::string_view::npos;) {
      comma = rest.find(',');
      add(runtime.string(std::string(rest.substr(0, comma))));
      if (comma != std::string_view::npos) rest.remove_prefix(comma + 1);
    }
  } else {
    add(attribute == nullptr ? Datum::none() : *attribute);
  }
  return runtime.tuple(std::move(keys));
}

Datum sort(Runtime& runtime, const Datum& input, const Arguments& arguments) {
  const auto bound = bind("sort", arguments, {"reverse", "case_sensitive", "attribute"});
  std::vector<Keyed> keyed;
  for (Datum& item : to_vector(runtime, input)) {
    Datum key = multi_key(runtime, item, bound[2], truth_or(bound[1], false));
    keyed.push_back({std::move(key), std::move(item)});
  }
  sort_keyed(runtime, keyed, truth_or(bound[0], false));
  return runtime.list(items_of(std::move(keyed)));
}

Datum dict_sort(Runtime& runtime, const Datum& input, const Arguments& arguments) {
  const auto bound = bind("dictsort", arguments, {"case_sensitive", "by", "reverse"});
  const std::string_view by =
      bound[1] != nullptr && bound[1]->is_string() ? text_of(*bound[1]) : "key";
  if (by != "key" && by != "value") {
    throw RenderError("You can only sort by either \"key\" or \"value\"");
  }
  check_defined(input);
  if (!input.is(Type::kDict)) {
    throw RenderError(fmt::format("'{}' object has no attribute 'items'", type_name(input)));
  }
  std::vector<Keyed> keyed;
  for (const auto& [key, value] : input.as<DictObject>().entries) {
    const Datum& chosen = by == "key" ? key : value;
    keyed.push_back({truth_or(bound[0], false) ? chosen : ignore_case(runtime, chosen),
                     runtime.tuple({key, value})});
  }
  sort_keyed(runtime, keyed, truth_or(bound[2], false));
  return runtime.list(items_of(std::move(keyed)));
}

/// The key of filters that take case_sensitive and attribute.
Datum item_key(Runtime& runtime, const Datum& item, const Datum* case_sensitive,
               const Datum* attribute) {
  Datum key = attribute == nullptr ? item : dotted_attribute(runtime, item, *attribute);
  return truth_or(case_sensitive, false) ? key : ignore_case(runtime, key);
}

Datum unique(Runtime& runtime, const Datum& input, const Arguments& arguments) {
  const auto bound = bind("unique", arguments, {"case_sensitive", "attribute"});
  const Ref<DictObject> seen = runtime.new_dict();
  std::vector<Datum> items;
  for (Datum& item : to_vector(runtime, input)) {
    Datum key = item_key(runtime, item, bound[0], bound[1]);
    if (dict_find(runtime, *seen, key) != nullptr) continue;
    dict_set(runtime, *seen, std::move(key), Datum::none());
    items.push_back(std::move(item));
  }
  return runtime.iterator(std::move(items));
}

Datum extreme(Runtime& runtime, const Datum& input, const Arguments& arguments, bool largest) {
  const auto bound = bind(largest ? "max" : "min", arguments, {"case_sensitive", "attribute"});
  Datum best;
  Datum best_key;
  for (Datum& item : to_vector(runtime, input)) {
    Datum key = item_key(runtime, item, bound[0], bound[1]);
    if (best.is_missing() ||
        (largest ? is_less(runtime, best_key, key) : is_less(runtime, key, best_key))) {
      best = std::move(item);
      best_key = std::move(key);
    }
  }
  return best.is_missing() ? runtime.undefined_hint("No aggregated item, sequence was empty.")
                           : best;
}

Datum minimum(Runtime& runtime, const Datum& input, const Arguments& arguments) {
  return extreme(runtime, input, arguments, false);
}

Datum maximum(Runtime& runtime, const Datum& input, const Arguments& arguments) {
  return extreme(runtime, input, arguments, true);
}

int64_t checked_count(Runtime& runtime, const Datum* argument, std::string_view what) {
  if (argument == nullptr) throw RenderError(fmt::format("{}() missing an argument", what));
  const int64_t count = integer_or(argument, 0);
  if (count > 0) {
    runtime.meter().require(static_cast<size_t>(std::min(count, kMaxLiveBytes)) * sizeof(Datum));
  }
  return count;
}

Datum batch(Runtime& runtime, const Datum& input, const Arguments& arguments) {
  const auto bound = bind("batch", arguments, {"linecount", "fill_with"});
  const int64_t count = checked_count(runtime, bound[0], "batch");
  std::vector<Datum> batches;
  std::vector<Datum> row;
  Cursor cursor(runtime, input);
  for (Datum item; cursor.next(item);) {
    if (static_cast<int64_t>(row.size()) == count) {
      batches.push_back(runtime.list(std::exchange(row, {})));
    }
    row.push_back(std::move(item));
  }
  if (!row.empty()) {
    const bool fill = bound[1] != nullptr && !bound[1]->is_none();
    while (fill && static_cast<int64_t>(row.size()) < count) {
      runtime.meter().step();
      row.push_back(*bound[1]);
    }
    batches.push_back(runtime.list(std::move(row)));
  }
  return runtime.iterator(std::move(batches));
}

Datum slice(Runtime& runtime, const Datum& input, const Arguments& arguments) {
  const auto bound = bind("slice", arguments, {"slices", "fill_with"});
  const int64_t slices = checked_count(runtime, bound[0], "slice");
  const std::vector<Datum> items = to_vector(runtime, input);
  if (slices == 0) throw RenderError("integer division or modulo by zero");
  const int64_t per_slice = slices < 0 ? 0 : static_cast<int64_t>(items.size()) / slices;
  const int64_t extra = slices < 0 ? 0 : static_cast<int64_t>(items.size()) % slices;
  const bool fill = bound[1] != nullptr && !bound[1]->is_none();
  std::vector<Datum> columns;
  size_t begin = 0;
  for (int64_t i = 0; i < slices; ++i) {
    runtime.meter().step();
    const auto count = static_cast<size_t>(per_slice + (i < extra ? 1 : 0));
    const auto from = items.begin() + static_cast<ptrdiff_t>(begin);
    std::vector<Datum> column(from, from + static_cast<ptrdiff_t>(count));
    begin += count;
    if (fill && i >= extra) column.push_back(*bound[1]);
    columns.push_back(runtime.list(std::move(column)));
  }
  return runtime.iterator(std::move(columns));
}

constexpr Filter kFilters[] = {
    {"length", length},    {"count", length}, {"default", default_filter},
    {"d", default_filter}, {"join", join},    {"first", first},
    {"last", last},        {"list", list},    {"items", items},
    {"reverse", reverse},  {"sort", sort},    {"dictsort", dict_sort},
    {"unique", unique},    {"min", minimum},  {"max", maximum},
    {"batch", batch},      {"slice", slice},
};

}  // namespace

std::span<const Filter> sequence_filters() {
  return kFilters;
}

}  // namespace quire::text::jinja
