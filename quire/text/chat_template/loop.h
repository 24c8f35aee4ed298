// LoopObject: the special variable `loop`; and the macro object.
#pragma once

#include <string_view>

#include "quire/text/chat_template/ast.h"
#include "quire/text/chat_template/sequence.h"

namespace quire::text::jinja {

/// The variables of one running function.
struct Activation : Object {
  explicit Activation(uint32_t num_slots, Ref<Activation> outside)
      : slots(num_slots), outer(std::move(outside)) {}
  void clear() override {
    slots.clear();
    outer.reset();
  }

  std::vector<Datum> slots;
  Ref<Activation> outer;
};

/// A macro, or the `caller` of a call block, with the variables around its definition.
struct MacroObject : Object {
  MacroObject(const Callable* of, Ref<Activation> closure_of)
      : callable(of), closure(std::move(closure_of)) {}
  void clear() override { closure.reset(); }

  const Callable* callable;
  Ref<Activation> closure;
};

/// Where a loop's items come from: the iterable, less what the loop's `if` rejects.
class ItemSource {
 public:
  virtual ~ItemSource() = default;
  virtual bool next(Datum& item) = 0;
  /// The number of items without fetching them, or -1.
  virtual int64_t known_length() const = 0;
};

/// Reads one item ahead when asked for `last`, `nextitem` or the length, never otherwise.
struct LoopObject : Object {
  LoopObject(const ForStatement* of, int32_t recursion) : statement(of), depth0(recursion) {}
  void clear() override;

  bool advance(Datum& item);
  bool peek(Datum& item);
  int64_t length(Runtime& runtime);

  const ForStatement* statement;
  int32_t depth0;
  ItemSource* source = nullptr;  // while the loop runs
  Ref<Activation> closure;       // the variables around a recursive loop
  std::vector<Datum> buffered;   // items fetched to know the length
  size_t buffered_next = 0;
  bool has_after = false;
  Datum after;
  Datum current;
  Datum before;
  Datum last_changed;
  int64_t index0 = -1;
  int64_t length_known = -1;

 private:
  bool fetch(Datum& item);
};

/// loop.name; false when there is none.
bool loop_attribute(Runtime& runtime, const Datum& loop, std::string_view name, Datum& result);
/// macro.name; false when there is none.
bool macro_attribute(Runtime& runtime, const Datum& macro, std::string_view name, Datum& result);

}  // namespace quire::text::jinja
