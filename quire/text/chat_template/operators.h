// Python's operators over Datum: truth, comparison, arithmetic, membership.
#pragma once

#include "quire/text/chat_template/runtime.h"

namespace quire::text::jinja {

enum class BinaryOp : uint8_t { kAdd, kSub, kMul, kDiv, kFloorDiv, kMod, kPow };
enum class CompareOp : uint8_t { kEq, kNe, kLt, kLe, kGt, kGe, kIn, kNotIn };

bool is_true(const Datum& value);
bool is_equal(Runtime& runtime, const Datum& left, const Datum& right);
/// `left < right`; throws RenderError when the types have no order.
bool is_less(Runtime& runtime, const Datum& left, const Datum& right);
bool compare(Runtime& runtime, CompareOp op, const Datum& left, const Datum& right);
/// `item in container`.
bool contains(Runtime& runtime, const Datum& container, const Datum& item);

Datum binary(Runtime& runtime, BinaryOp op, const Datum& left, const Datum& right);
Datum negate(const Datum& value);
Datum unary_plus(const Datum& value);

/// The length of what has one. Throws RenderError otherwise.
int64_t length_of(const Datum& value);

}  // namespace quire::text::jinja
