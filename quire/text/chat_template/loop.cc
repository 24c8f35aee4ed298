#include "quire/text/chat_template/loop.h"

#include "quire/text/chat_template/methods.h"

namespace quire::text::jinja {
namespace {

Datum loop_cycle(Runtime&, const Datum& receiver, const Arguments& arguments) {
  const auto& loop = receiver.as<LoopObject>();
  if (arguments.positional.empty()) throw RenderError("no items for cycling given");
  return arguments.positional[static_cast<size_t>(loop.index0) % arguments.positional.size()];
}

Datum loop_changed(Runtime& runtime, const Datum& receiver, const Arguments& arguments) {
  auto& loop = receiver.as<LoopObject>();
  Datum value = runtime.tuple(arguments.positional);
  if (!loop.last_changed.is_missing() && is_equal(runtime, loop.last_changed, value)) {
    return Datum::boolean(false);
  }
  loop.last_changed = std::move(value);
  return Datum::boolean(true);
}

constexpr Method kLoopMethods[] = {{"cycle", loop_cycle}, {"changed", loop_changed}};

}  // namespace

void LoopObject::clear() {
  closure.reset();
  buffered.clear();
  for (Datum* value : {&after, &current, &before, &last_changed}) *value = Datum();
}

bool LoopObject::fetch(Datum& item) {
  if (buffered_next < buffered.size()) {
    item = std::move(buffered[buffered_next++]);
    return true;
  }
  return source != nullptr && source->next(item);
}

bool LoopObject::advance(Datum& item) {
  if (has_after) {
    item = std::move(after);
    has_after = false;
  } else if (!fetch(item)) {
    return false;
  }
  ++index0;
  before = std::move(current);
  current = item;
  return true;
}

bool LoopObject::peek(Datum& item) {
  if (!has_after) has_after = fetch(after);
  if (has_after) item = after;
  return has_after;
}

int64_t LoopObject::length(Runtime& runtime) {
  if (length_known >= 0) return length_known;
  length_known = source == nullptr ? 0 : source->known_length();
  if (length_known < 0) {
    for (Datum item; source->next(item);) {
      runtime.heap().grow(*this, sizeof(Datum));
      buffered.push_back(item);
    }
    length_known = static_cast<int64_t>(buffered.size()) + index0 + 1 + (has_after ? 1 : 0);
  }
  return length_known;
}

bool loop_attribute(Runtime& runtime, const Datum& value, std::string_view name, Datum& result) {
  auto& loop = value.as<LoopObject>();
  if (name == "index") {
    result = Datum::integer(loop.index0 + 1);
  } else if (name == "index0") {
    result = Datum::integer(loop.index0);
  } else if (name == "first") {
    result = Datum::boolean(loop.index0 == 0);
  } else if (name == "last") {
    result = Datum::boolean(!loop.peek(result));
  } else if (name == "length") {
    result = Datum::integer(loop.length(runtime));
  } else if (name == "revindex") {
    result = Datum::integer(loop.length(runtime) - loop.index0);
  } else if (name == "revindex0") {
    result = Datum::integer(loop.length(runtime) - loop.index0 - 1);
  } else if (name == "depth") {
    result = Datum::integer(loop.depth0 + 1);
  } else if (name == "depth0") {
    result = Datum::integer(loop.depth0);
  } else if (name == "previtem") {
    result = loop.index0 <= 0 ? runtime.undefined_hint("there is no previous item") : loop.before;
  } else if (name == "nextitem") {
    if (!loop.peek(result)) result = runtime.undefined_hint("there is no next item");
  } else {
    for (const Method& method : kLoopMethods) {
      if (method.name != name) continue;
      result = Datum(Type::kMethod, runtime.heap().make<MethodObject>(0, value, &method).get());
      return true;
    }
    return false;
  }
  return true;
}

bool macro_attribute(Runtime& runtime, const Datum& value, std::string_view name, Datum& result) {
  const Callable& callable = *value.as<MacroObject>().callable;
  if (name == "name") {
    result = callable.name.empty() ? Datum::none() : runtime.borrowed_string(callable.name);
  } else if (name == "arguments") {
    std::vector<Datum> names;
    names.reserve(callable.parameters.size());
    for (const Target& parameter : callable.parameters) {
      names.push_back(runtime.borrowed_string(parameter.name));
    }
    result = runtime.tuple(std::move(names));
  } else if (name == "catch_kwargs") {
    result = Datum::boolean(callable.kwargs_slot.has_value());
  } else if (name == "catch_varargs") {
    result = Datum::boolean(callable.varargs_slot.has_value());
  } else if (name == "caller") {
    result = Datum::boolean(callable.caller_slot.has_value() || callable.explicit_caller);
  } else {
    return false;
  }
  return true;
}

}  // namespace quire::text::jinja
