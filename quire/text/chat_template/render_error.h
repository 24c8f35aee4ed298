// RenderError and SyntaxError: what stops a rendering or a parse; both stay inside the interpreter,
// ChatTemplate turns them into Error and LoadError.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>

namespace quire::text::jinja {

/// Thrown while rendering; ends the rendering as an Error of kind kInvalid.
class RenderError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// raise_exception(message): reaches the client without a line number.
class RaisedByTemplate : public RenderError {
 public:
  using RenderError::RenderError;
};

/// Thrown while parsing; ends the load as a LoadError.
class SyntaxError : public std::runtime_error {
 public:
  SyntaxError(uint32_t source_line, const std::string& message)
      : std::runtime_error(message), line(source_line) {}
  uint32_t line;
};

}  // namespace quire::text::jinja
