// Registration: what RegisterThread returns.
#pragma once

#include <cstdint>
#include <utility>

#include "absl/status/status.h"
#include "strobe/base/memory_guard.h"
#include "strobe/base/visibility.h"

namespace strobe {

namespace STROBE_HIDDEN internal {

template <class Platform>
class CoreBase;
class ProfilerHandle;

// Ends registrations. A Profiler's core implements it.
class RegistrationOwner {
 public:
  virtual void EndRegistration(void* thread, std::uint64_t thread_id) = 0;

 protected:
  ~RegistrationOwner() = default;
};

// The status of a registration that registers nothing, and that of a moved-from one.
[[nodiscard]] inline absl::Status RegistersNothing() noexcept {
  return MakeStatus(absl::StatusCode::kCancelled, "registers nothing");
}
[[nodiscard]] inline absl::Status MovedAway() noexcept {
  return MakeStatus(absl::StatusCode::kCancelled, "the registration was moved away");
}

}  // namespace internal

// Keeps a thread registered while the object lives. Move-only. It must end on the thread that it
// began on; otherwise that thread stays registered, and a line on stderr says so. It may outlive
// its Profiler, as the registration of a detached thread does at exit. If the registration failed,
// status() says why, and the object does nothing.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wattributes"  // holds what is hidden
class [[nodiscard]] Registration {
 public:
  // Registers nothing.
  Registration() = default;
  Registration(Registration&& other) noexcept
      : status_(std::exchange(other.status_, internal::MovedAway())),
        owner_(std::exchange(other.owner_, nullptr)),
        thread_(other.thread_),
        thread_id_(other.thread_id_) {}
  Registration& operator=(Registration&& other) noexcept {
    if (this != &other) {
      End();
      status_ = std::exchange(other.status_, internal::MovedAway());
      owner_ = std::exchange(other.owner_, nullptr);
      thread_ = other.thread_;
      thread_id_ = other.thread_id_;
    }
    return *this;
  }
  Registration(const Registration&) = delete;
  Registration& operator=(const Registration&) = delete;
  ~Registration() { End(); }

  // OK if the thread is registered, otherwise the reason why not.
  [[nodiscard]] const absl::Status& status() const { return status_; }

 private:
  template <class Platform>
  friend class internal::CoreBase;
  friend class internal::ProfilerHandle;

  explicit Registration(absl::Status status) : status_(std::move(status)) {}
  Registration(internal::RegistrationOwner* owner, void* thread, std::uint64_t thread_id)
      : status_(absl::OkStatus()), owner_(owner), thread_(thread), thread_id_(thread_id) {}

  void End() {
    if (owner_ != nullptr) std::exchange(owner_, nullptr)->EndRegistration(thread_, thread_id_);
  }

  absl::Status status_ = internal::RegistersNothing();
  internal::RegistrationOwner* owner_ = nullptr;
  void* thread_ = nullptr;
  std::uint64_t thread_id_ = 0;
};
#pragma GCC diagnostic pop

}  // namespace strobe
