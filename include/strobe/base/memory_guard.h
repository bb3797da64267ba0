// Protects the program from failed allocations: std::bad_alloc never leaves a thread or a public
// call of this library. Control plane only.
#pragma once

#include <memory>
#include <string_view>
#include <type_traits>

#include "absl/status/status.h"
#include "strobe/base/visibility.h"

namespace strobe {
namespace STROBE_HIDDEN internal {

// Calls function(context). False if it threw std::bad_alloc; other exceptions propagate. The catch
// clause is in the library, so that the headers also compile without exceptions.
[[nodiscard]] bool CallGuarded(void (*function)(void* context), void* context);

// Runs `body`; false if memory ran out in it.
template <class Body>
[[nodiscard]] bool HasMemoryFor(Body&& body) {
  using Plain = std::remove_reference_t<Body>;
  return CallGuarded([](void* context) { (*static_cast<Plain*>(context))(); },
                     const_cast<void*>(static_cast<const void*>(std::addressof(body))));
}

// A status with `code` and `message`, or without the message if memory runs out.
[[nodiscard]] absl::Status MakeStatus(absl::StatusCode code, std::string_view message) noexcept;

// The status of a public call that ran out of memory: ResourceExhausted.
[[nodiscard]] inline absl::Status OutOfMemory() noexcept {
  return MakeStatus(absl::StatusCode::kResourceExhausted, "out of memory");
}

}  // namespace internal
}  // namespace strobe
