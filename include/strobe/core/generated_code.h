// GeneratedCode: code that the program generates and that no file holds. CodeRegistration: the
// result of RegisterCode.
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

  // Profiles show the frames in this range as the name and an offset: "name+0x12". Bytes beyond
  // kMaxNameBytes are cut.
  std::string_view name;
  const void* start = nullptr;
  std::size_t bytes = 0;
  // Call frame information in the format of .eh_frame: a CIE, and an FDE for each function. The
  // bytes must neither move nor change until the registration ends. Empty if the compiler writes
  // none; the code is then unwound by frame pointers.
  std::span<const std::byte> eh_frame = {};
};

namespace STROBE_HIDDEN internal {

// Owns the registered ranges. Thread-safe.
class GeneratedCodeOwner {
 public:
  virtual absl::Status Add(const GeneratedCode& code) = 0;
  // Removes the range that starts at `start`, which must have been added.
  virtual void Remove(Address start) = 0;

 protected:
  ~GeneratedCodeOwner() = default;
};

}  // namespace internal

// Keeps a range of generated code registered while the object lives. Move-only. It may end on any
// thread, and after its Profiler. If the registration failed, status() says why, and the object
// does nothing.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wattributes"  // holds what is hidden
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

  // OK if the range is registered, otherwise the reason why not.
  [[nodiscard]] const absl::Status& status() const { return status_; }

 private:
  template <class Platform>
  friend class internal::CoreBase;
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
#pragma GCC diagnostic pop

}  // namespace strobe
