// GeneratedCode: code that no file holds, because the program has generated it. CodeRegistration:
// what RegisterCode returns.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "strobe/base/address.h"
#include "strobe/base/visibility.h"
#include "strobe/core/registration.h"

namespace strobe {

// A range of generated code, as a just-in-time compiler leaves it in memory.
struct GeneratedCode {
  static constexpr std::size_t kMaxNameBytes = 255;

  // What its frames are shown as, with the offset: "name+0x12"; at most kMaxNameBytes are kept.
  std::string_view name;
  const void* start = nullptr;
  std::size_t bytes = 0;
  // Its call frame information, in the format of .eh_frame, where the compiler writes any: a CIE,
  // and an FDE for each function. It stays where it is, and as it is, until the registration ends.
  // Code without is left by its frame pointers.
  std::span<const std::byte> eh_frame = {};
};

STROBE_HIDDEN_BEGIN
namespace internal {

// What keeps the registered ranges. Thread-safe.
class GeneratedCodeOwner {
 public:
  virtual absl::Status Add(const GeneratedCode& code) = 0;
  // The range that starts there, which has been added.
  virtual void Remove(Address start) = 0;

 protected:
  ~GeneratedCodeOwner() = default;
};

}  // namespace internal
STROBE_HIDDEN_END

// The registration of a range of generated code, for as long as the object lives. Move-only; it may
// end on any thread, and after its Profiler. Where the range could not be registered, status() says
// why, and the object does nothing.
STROBE_HOLDS_HIDDEN_BEGIN
class [[nodiscard]] CodeRegistration {
 public:
  // Registers nothing.
  CodeRegistration() = default;
  CodeRegistration(CodeRegistration&& other) noexcept
      : status_(std::exchange(other.status_, internal::MovedAway())),
        owner_(std::move(other.owner_)),
        start_(other.start_) {}
  CodeRegistration& operator=(CodeRegistration&& other) noexcept {
    if (this != &other) {
      End();
      status_ = std::exchange(other.status_, internal::MovedAway());
      owner_ = std::move(other.owner_);
      start_ = other.start_;
    }
    return *this;
  }
  CodeRegistration(const CodeRegistration&) = delete;
  CodeRegistration& operator=(const CodeRegistration&) = delete;
  ~CodeRegistration() { End(); }

  // Whether the range is registered, and if not, why.
  [[nodiscard]] const absl::Status& status() const { return status_; }

 private:
  template <class Traits>
  friend class internal::ProfilerCore;
  friend class internal::ProfilerHandle;

  explicit CodeRegistration(absl::Status status) : status_(std::move(status)) {}
  CodeRegistration(std::shared_ptr<internal::GeneratedCodeOwner> owner, const GeneratedCode& code)
      : status_(owner->Add(code)), start_(reinterpret_cast<Address>(code.start)) {
    if (status_.ok()) owner_ = std::move(owner);
  }

  void End() {
    if (owner_ != nullptr) std::exchange(owner_, nullptr)->Remove(start_);
  }

  absl::Status status_ = internal::RegistersNothing();
  std::shared_ptr<internal::GeneratedCodeOwner> owner_;
  Address start_ = 0;
};
STROBE_HOLDS_HIDDEN_END

}  // namespace strobe
