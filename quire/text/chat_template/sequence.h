// Cursor: goes through whatever Python can iterate over, one item at a time.
#pragma once

#include <vector>

#include "quire/text/chat_template/runtime.h"

namespace quire::text::jinja {

bool is_iterable(const Datum& value);

class Cursor {
 public:
  /// Throws RenderError when `iterable` cannot be iterated over.
  Cursor(Runtime& runtime, Datum iterable);
  /// Moves on and gives the item; false at the end.
  bool next(Datum& item);
  bool has_length() const { return !iterable_.is(Type::kIterator); }
  const Datum& iterable() const { return iterable_; }

 private:
  Runtime& runtime_;
  Datum iterable_;
  size_t position_ = 0;
};

/// list(iterable).
std::vector<Datum> to_vector(Runtime& runtime, const Datum& iterable);

}  // namespace quire::text::jinja
