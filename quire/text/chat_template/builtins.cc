#include <fmt/format.h>
#include <time.h>

#include <algorithm>
#include <chrono>

#include "quire/text/chat_template/evaluator.h"
#include "quire/text/chat_template/filters.h"
#include "quire/text/chat_template/text_form.h"

namespace quire::text::jinja {
namespace {

constexpr int64_t kMaxRange = 100'000;  // what Jinja's sandbox allows
constexpr size_t kMaxTimeFormat = 1024;

Datum range(Runtime& runtime, const Arguments& arguments) {
  if (!arguments.keyword.empty()) throw RenderError("range() takes no keyword arguments");
  const auto bound = bind("range", arguments, {"start", "stop", "step"});
  if (bound[0] == nullptr) throw RenderError("range expected at least 1 argument, got 0");
  const bool one = bound[1] == nullptr;
  const int64_t start = one ? 0 : integer_or(bound[0], 0);
  const int64_t stop = integer_or(one ? bound[0] : bound[1], 0);
  const int64_t step = integer_or(bound[2], 1);
  if (step == 0) throw RenderError("range() arg 3 must not be zero");
  const __int128 distance =
      step > 0 ? static_cast<__int128>(stop) - start : static_cast<__int128>(start) - stop;
  const __int128 stride = step > 0 ? static_cast<__int128>(step) : -static_cast<__int128>(step);
  const __int128 length = distance <= 0 ? 0 : (distance - 1) / stride + 1;
  if (length > kMaxRange) {
    throw RenderError(fmt::format(
        "Range too big. The sandbox blocks ranges larger than MAX_RANGE ({}).", kMaxRange));
  }
  return runtime.range(start, stop, step, static_cast<int64_t>(length));
}

/// dict(mapping or pairs, name=value, ...).
Ref<DictObject> make_dict(Runtime& runtime, const Arguments& arguments) {
  Ref<DictObject> dict = runtime.new_dict();
  if (arguments.positional.size() > 1) throw RenderError("dict expected at most 1 argument");
  if (!arguments.positional.empty()) {
    const Datum& from = arguments.positional.front();
    check_defined(from);
    if (from.is(Type::kDict)) {
      for (const auto& [key, value] : from.as<DictObject>().entries) {
        dict_set(runtime, *dict, key, value);
      }
    } else {
      for (const Datum& pair : to_vector(runtime, from)) {
        std::vector<Datum> parts = to_vector(runtime, pair);
        if (parts.size() != 2) {
          throw RenderError("dictionary update sequence element has not length 2");
        }
        dict_set(runtime, *dict, std::move(parts[0]), std::move(parts[1]));
      }
    }
  }
  for (const auto& [name, value] : arguments.keyword) {
    dict_set(runtime, *dict, runtime.string(std::string(name)), value);
  }
  return dict;
}

Datum dict(Runtime& runtime, const Arguments& arguments) {
  return runtime.dict(make_dict(runtime, arguments));
}

Datum make_namespace(Runtime& runtime, const Arguments& arguments) {
  return Datum(Type::kNamespace,
               runtime.heap().make<NamespaceObject>(0, make_dict(runtime, arguments)).get());
}

Datum cycler(Runtime& runtime, const Arguments& arguments) {
  if (arguments.positional.empty()) throw RenderError("at least one item has to be provided");
  return Datum(Type::kCycler, runtime.heap()
                                  .make<CyclerObject>(arguments.positional.size() * sizeof(Datum),
                                                      arguments.positional)
                                  .get());
}

Datum joiner(Runtime& runtime, const Arguments& arguments) {
  const auto bound = bind("joiner", arguments, {"sep"});
  const Datum separator = bound[0] == nullptr ? runtime.borrowed_string(", ") : *bound[0];
  return Datum(Type::kJoiner, runtime.heap().make<JoinerObject>(0, separator).get());
}

Datum raise_exception(Runtime& runtime, const Arguments& arguments) {
  const auto bound = bind("raise_exception", arguments, {"message"});
  if (bound[0] == nullptr) throw RenderError("raise_exception() missing a message");
  throw RaisedByTemplate(to_str(runtime, *bound[0]));
}

Datum strftime_now(Runtime& runtime, const Arguments& arguments) {
  const auto bound = bind("strftime_now", arguments, {"format"});
  if (bound[0] == nullptr || !bound[0]->is_string()) {
    throw RenderError("strftime_now() takes a format");
  }
  const std::string format(text_of(*bound[0]));
  if (format.size() > kMaxTimeFormat) throw RenderError("strftime_now(): the format is too long");
  const auto system_now = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
  const time_t now = static_cast<time_t>(runtime.now_unix_s().value_or(system_now));
  tm parts{};
  localtime_r(&now, &parts);
  // A closing mark tells an empty result from a buffer that was too small.
  std::string out(kMaxTimeFormat * 128, '\0');
  const size_t length = strftime(out.data(), out.size(), (format + ".").c_str(), &parts);
  out.resize(length == 0 ? 0 : length - 1);
  return runtime.string(std::move(out));
}

constexpr Builtin kBuiltins[] = {
    {"range", range},
    {"dict", dict},
    {"namespace", make_namespace},
    {"cycler", cycler},
    {"joiner", joiner},
    {"raise_exception", raise_exception},
    {"strftime_now", strftime_now},
};

}  // namespace

const Builtin* find_builtin(std::string_view name) {
  const auto* found = std::find_if(std::begin(kBuiltins), std::end(kBuiltins),
                                   [&](const Builtin& builtin) { return builtin.name == name; });
  return found == std::end(kBuiltins) ? nullptr : found;
}

}  // namespace quire::text::jinja
