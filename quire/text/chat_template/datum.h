// Datum: one value during a rendering, a tagged 16-byte word; what is larger lives in a counted
// Object.
#pragma once

#include <cstdint>
#include <utility>

namespace quire::text::jinja {

class Heap;

enum class Type : uint8_t {
  kMissing,  // an unset variable slot; never seen by templates
  kNone,
  kBool,
  kInt,
  kFloat,
  kBuiltin,  // a global function such as range
  // From here on the value is an Object.
  kUndefined,
  kString,
  kList,
  kTuple,
  kDict,
  kRange,
  kDictView,  // what keys(), values() and items() return
  kIterator,  // one-shot: what generators are in Python
  kNamespace,
  kMacro,
  kMethod,  // a method bound to its receiver
  kLoop,
  kCycler,
  kJoiner,
};

/// Something that lives in a Heap while references to it exist. Constants of a parsed template have
/// no heap: they are owned by the template, shared between threads, and never counted.
class Object {
 public:
  Object() = default;
  virtual ~Object() = default;
  Object(const Object&) = delete;
  Object& operator=(const Object&) = delete;
  /// Drops every reference this object holds.
  virtual void clear() {}

 private:
  friend class Heap;
  friend class Datum;
  template <typename T>
  friend class Ref;
  void retain() {
    if (heap_ != nullptr) ++references_;
  }
  void release();

  Heap* heap_ = nullptr;
  Object* previous_ = nullptr;
  Object* next_ = nullptr;
  int64_t references_ = 0;
  int64_t charged_bytes_ = 0;
};

struct Builtin;

class Datum {
 public:
  Datum() : type_(Type::kMissing) { word_.integer = 0; }
  static Datum none() { return Datum(Type::kNone); }
  static Datum boolean(bool value) {
    Datum datum(Type::kBool);
    datum.word_.integer = value ? 1 : 0;
    return datum;
  }
  static Datum integer(int64_t value) {
    Datum datum(Type::kInt);
    datum.word_.integer = value;
    return datum;
  }
  static Datum real(double value) {
    Datum datum(Type::kFloat);
    datum.word_.floating = value;
    return datum;
  }
  static Datum builtin(const Builtin* value) {
    Datum datum(Type::kBuiltin);
    datum.word_.builtin = value;
    return datum;
  }
  Datum(Type type, Object* object) : type_(type) {
    word_.object = object;
    object->retain();
  }
  Datum(const Datum& other) : type_(other.type_), word_(other.word_) {
    if (is_object()) word_.object->retain();
  }
  Datum(Datum&& other) noexcept : type_(other.type_), word_(other.word_) {
    other.type_ = Type::kMissing;
  }
  Datum& operator=(Datum other) noexcept {
    std::swap(type_, other.type_);
    std::swap(word_, other.word_);
    return *this;
  }
  ~Datum() {
    if (is_object()) word_.object->release();
  }

  Type type() const { return type_; }
  bool is(Type type) const { return type_ == type; }
  bool is_object() const { return type_ >= Type::kUndefined; }
  bool is_missing() const { return type_ == Type::kMissing; }
  bool is_none() const { return type_ == Type::kNone; }
  bool is_undefined() const { return type_ == Type::kUndefined; }
  bool is_string() const { return type_ == Type::kString; }
  /// Python's int: bool is one of its kinds.
  bool is_integral() const { return type_ == Type::kInt || type_ == Type::kBool; }
  bool is_number() const { return is_integral() || type_ == Type::kFloat; }
  bool is_sequence() const { return type_ == Type::kList || type_ == Type::kTuple; }

  /// Of an int or bool.
  int64_t as_int() const { return word_.integer; }
  bool as_bool() const { return word_.integer != 0; }
  /// Of a float.
  double as_float() const { return word_.floating; }
  /// Of any number.
  double to_double() const {
    return type_ == Type::kFloat ? word_.floating : static_cast<double>(word_.integer);
  }
  const Builtin* as_builtin() const { return word_.builtin; }
  Object* object() const { return word_.object; }
  template <typename T>
  T& as() const {
    return *static_cast<T*>(word_.object);
  }
  /// Python's `is`.
  bool same_as(const Datum& other) const;

 private:
  explicit Datum(Type type) : type_(type) { word_.integer = 0; }

  Type type_;
  union {
    int64_t integer;
    double floating;
    const Builtin* builtin;
    Object* object;
  } word_;
};

/// A counted reference to an Object of known kind; may be null.
template <typename T>
class Ref {
 public:
  Ref() = default;
  explicit Ref(T* object) : object_(object) {
    if (object_ != nullptr) object_->retain();
  }
  Ref(const Ref& other) : Ref(other.object_) {}
  Ref(Ref&& other) noexcept : object_(std::exchange(other.object_, nullptr)) {}
  Ref& operator=(Ref other) noexcept {
    std::swap(object_, other.object_);
    return *this;
  }
  ~Ref() { reset(); }
  void reset() {
    if (T* object = std::exchange(object_, nullptr)) object->release();
  }

  T* get() const { return object_; }
  T* operator->() const { return object_; }
  T& operator*() const { return *object_; }
  explicit operator bool() const { return object_ != nullptr; }

 private:
  T* object_ = nullptr;
};

}  // namespace quire::text::jinja
