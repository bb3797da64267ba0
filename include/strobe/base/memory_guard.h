// What stands between an allocation that fails and the program: std::bad_alloc never leaves a
// thread or a public call of this library. Control plane only.
#pragma once

#include <memory>
#include <string_view>
#include <type_traits>

#include "absl/status/status.h"
#include "strobe/base/visibility.h"

STROBE_HIDDEN_BEGIN
namespace strobe::internal {

// Calls function(context). False if it threw std::bad_alloc; other exceptions pass. The handler
// stands in the library, so that headers compile without exceptions, too.
[[nodiscard]] bool CallGuarded(void (*function)(void* context), void* context);

// Runs `body`; false if memory ran out in it.
template <class Body>
[[nodiscard]] bool HasMemoryFor(Body&& body) {
  using Plain = std::remove_reference_t<Body>;
  return CallGuarded([](void* context) { (*static_cast<Plain*>(context))(); },
                     const_cast<void*>(static_cast<const void*>(std::addressof(body))));
}

// A status of that code with that message, or without it where there is no memory for a message.
[[nodiscard]] absl::Status MakeStatus(absl::StatusCode code, std::string_view message) noexcept;

// What a public call returns where memory ran out: ResourceExhausted.
[[nodiscard]] inline absl::Status OutOfMemory() noexcept {
  return MakeStatus(absl::StatusCode::kResourceExhausted, "out of memory");
}

}  // namespace strobe::internal
STROBE_HIDDEN_END
