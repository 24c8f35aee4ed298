// Result<T>: the value of something a request asked for, or the error its client is to be told.
#pragma once

#include <string>
#include <utility>
#include <variant>

#include "quire/base/check.h"

namespace quire {

/// What kind of failure a request met; the server maps each to one HTTP status in one table.
enum class ErrorKind {
  kInvalid,       // 400: a value or prompt that cannot be served
  kUnauthorized,  // 401
  kNotFound,      // 404
  kTooLarge,      // 413
  kOverloaded,    // 429
  kUnavailable,   // 503: loading, draining or the engine is dead
  kInternal,      // 500
};

/// The error of one request. `param` names the field at fault, or is empty.
struct Error {
  ErrorKind kind = ErrorKind::kInternal;
  std::string message;
  std::string param;
};

inline Error invalid(std::string message, std::string param = {}) {
  return {ErrorKind::kInvalid, std::move(message), std::move(param)};
}

/// Either a T or an Error.
template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value)
      : state_(std::in_place_index<0>, std::move(value)) {}  // NOLINT(google-explicit-constructor)
  Result(Error error)
      : state_(std::in_place_index<1>, std::move(error)) {}  // NOLINT(google-explicit-constructor)

  bool ok() const { return state_.index() == 0; }
  explicit operator bool() const { return ok(); }

  T& value() & {
    QUIRE_CHECK(ok());
    return std::get<0>(state_);
  }
  const T& value() const& {
    QUIRE_CHECK(ok());
    return std::get<0>(state_);
  }
  T&& value() && {
    QUIRE_CHECK(ok());
    return std::get<0>(std::move(state_));
  }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }

  const Error& error() const {
    QUIRE_CHECK(!ok());
    return std::get<1>(state_);
  }

 private:
  std::variant<T, Error> state_;
};

}  // namespace quire
