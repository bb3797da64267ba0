// Secret: a key, a token or a password. It converts to nothing, so that no log, error or file gets
// it by accident.
#pragma once

#include <string>
#include <utility>

namespace strobe {

class Secret {
 public:
  Secret() = default;
  // NOLINTNEXTLINE(google-explicit-constructor): {.api_key = "..."}
  Secret(std::string value) : value_(std::move(value)) {}
  // NOLINTNEXTLINE(google-explicit-constructor): {.api_key = "..."}
  Secret(const char* value) : value_(value) {}

  [[nodiscard]] bool empty() const { return value_.empty(); }
  // For the header that carries it, and for nothing else.
  [[nodiscard]] const std::string& Reveal() const { return value_; }

 private:
  std::string value_;
};

}  // namespace strobe
