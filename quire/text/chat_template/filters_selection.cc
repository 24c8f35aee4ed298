#include <fmt/format.h>

#include <algorithm>

#include "quire/text/chat_template/filters.h"
#include "quire/text/chat_template/lookup.h"
#include "quire/text/chat_template/operators.h"
#include "quire/text/chat_template/sequence.h"
#include "quire/text/chat_template/tests.h"

namespace quire::text::jinja {
namespace {

/// `arguments` without its first `count` positional ones.
Arguments without_first(const Arguments& arguments, size_t count) {
  Arguments rest = arguments;
  rest.positional.erase(rest.positional.begin(),
                        rest.positional.begin() + static_cast<ptrdiff_t>(count));
  return rest;
}

std::string_view name_argument(const Datum& name, std::string_view what) {
  if (!name.is_string()) throw RenderError(fmt::format("No {} named '{}'.", what, type_name(name)));
  return text_of(name);
}

/// items, each as `attribute`, with `default` where that is undefined.
std::vector<Datum> map_attribute(Runtime& runtime, const Datum& input, const Arguments& arguments) {
  const auto bound = bind("map", arguments, {"attribute", "default"});
  std::vector<Datum> out;
  for (Datum& item : to_vector(runtime, input)) {
    Datum value = dotted_attribute(runtime, std::move(item), *bound[0]);
    const bool use_default = value.is_undefined() && bound[1] != nullptr && !bound[1]->is_none();
    if (use_default) value = *bound[1];
    out.push_back(std::move(value));
  }
  return out;
}

Datum map(Runtime& runtime, const Datum& input, const Arguments& arguments) {
  if (!is_true(input)) return runtime.iterator({});
  if (arguments.positional.empty() && arguments.find("attribute") != nullptr) {
    return runtime.iterator(map_attribute(runtime, input, arguments));
  }
  if (arguments.positional.empty()) throw RenderError("map requires a filter argument");
  const std::string_view name = name_argument(arguments.positional[0], "filter");
  const Filter* filter = find_filter(name);
  if (filter == nullptr) throw RenderError(fmt::format("No filter named '{}'.", name));
  const Arguments rest = without_first(arguments, 1);
  std::vector<Datum> out;
  const DepthGuard guard(runtime.meter());
  for (const Datum& item : to_vector(runtime, input)) {
    out.push_back(filter->apply(runtime, item, rest));
  }
  return runtime.iterator(std::move(out));
}

Datum select_if(Runtime& runtime, const Datum& input, const Arguments& arguments, bool wanted,
                bool by_attribute) {
  if (!is_true(input)) return runtime.iterator({});
  const size_t skipped = by_attribute ? 1 : 0;
  if (arguments.positional.size() < skipped) {
    throw RenderError("Missing parameter for attribute name");
  }
  const Test* test = nullptr;
  Arguments rest;
  if (arguments.positional.size() > skipped) {
    const std::string_view name = name_argument(arguments.positional[skipped], "test");
    test = find_test(name);
    if (test == nullptr) throw RenderError(fmt::format("No test named '{}'.", name));
    rest = without_first(arguments, skipped + 1);
  }
  std::vector<Datum> out;
  for (Datum& item : to_vector(runtime, input)) {
    const Datum value =
        by_attribute ? dotted_attribute(runtime, item, arguments.positional[0]) : item;
    const bool passes = test == nullptr ? is_true(value) : test->check(runtime, value, rest);
    if (passes == wanted) out.push_back(std::move(item));
  }
  return runtime.iterator(std::move(out));
}

Datum select(Runtime& runtime, const Datum& input, const Arguments& arguments) {
  return select_if(runtime, input, arguments, true, false);
}

Datum reject(Runtime& runtime, const Datum& input, const Arguments& arguments) {
  return select_if(runtime, input, arguments, false, false);
}

Datum select_attribute(Runtime& runtime, const Datum& input, const Arguments& arguments) {
  return select_if(runtime, input, arguments, true, true);
}

Datum reject_attribute(Runtime& runtime, const Datum& input, const Arguments& arguments) {
  return select_if(runtime, input, arguments, false, true);
}

Datum group_by(Runtime& runtime, const Datum& input, const Arguments& arguments) {
  const auto bound = bind("groupby", arguments, {"attribute", "default", "case_sensitive"});
  if (bound[0] == nullptr) throw RenderError("groupby() missing an attribute");
  struct Entry {
    Datum key;    // what is sorted by
    Datum shown;  // what the group is called
    Datum item;
  };
  std::vector<Entry> entries;
  for (Datum& item : to_vector(runtime, input)) {
    Datum shown = dotted_attribute(runtime, item, *bound[0]);
    if (shown.is_undefined() && bound[1] != nullptr && !bound[1]->is_none()) shown = *bound[1];
    Datum key = truth_or(bound[2], false) ? shown : ignore_case(runtime, shown);
    entries.push_back({std::move(key), std::move(shown), std::move(item)});
  }
  std::stable_sort(entries.begin(), entries.end(),
                   [&](const Entry& a, const Entry& b) { return is_less(runtime, a.key, b.key); });
  std::vector<Datum> groups;
  for (size_t begin = 0; begin < entries.size();) {
    std::vector<Datum> members = {entries[begin].item};
    size_t end = begin + 1;
    while (end < entries.size() && is_equal(runtime, entries[begin].key, entries[end].key)) {
      members.push_back(entries[end++].item);
    }
    Datum group = runtime.tuple({entries[begin].shown, runtime.list(std::move(members))});
    group.as<ListObject>().is_group = true;
    groups.push_back(std::move(group));
    begin = end;
  }
  return runtime.list(std::move(groups));
}

Datum attribute(Runtime& runtime, const Datum& input, const Arguments& arguments) {
  const auto bound = bind("attr", arguments, {"name"});
  if (bound[0] == nullptr || !bound[0]->is_string()) throw RenderError("attr() takes a name");
  const std::string_view name = text_of(*bound[0]);
  if (input.is(Type::kDict)) {  // attributes only, never items
    const Datum found = get_attribute(runtime, runtime.dict(runtime.new_dict()), name);
    return found.is_undefined() ? runtime.undefined_attribute(input, name)
                                : get_attribute(runtime, input, name);
  }
  return get_attribute(runtime, input, name);
}

constexpr Filter kFilters[] = {
    {"map", map},
    {"select", select},
    {"reject", reject},
    {"selectattr", select_attribute},
    {"rejectattr", reject_attribute},
    {"groupby", group_by},
    {"attr", attribute},
};

}  // namespace

std::span<const Filter> selection_filters() {
  return kFilters;
}

}  // namespace quire::text::jinja
