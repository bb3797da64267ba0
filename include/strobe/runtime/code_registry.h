// CodeRegistry: code that no file holds, because the program has generated it. CodeRegistration:
// what RegisterCode returns.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "strobe/base/address.h"
#include "strobe/base/visibility.h"
#include "strobe/core/module_map.h"

namespace strobe {

// A range of generated code, as a just-in-time compiler leaves it in memory.
struct GeneratedCode {
  std::string_view
      // What its frames are shown as, with the offset: "name+0x12"; at most
      // CodeRegistry::kMaxNameBytes are kept.
      name;
  const void* start = nullptr;
  std::size_t bytes = 0;
  // Its call frame information, in the format of .eh_frame, where the compiler writes any: a CIE,
  // and an FDE for each function. It stays where it is, and as it is, until the registration ends.
  // Code without is left by its frame pointers.
  std::span<const std::byte> eh_frame = {};
};

STROBE_HIDDEN_BEGIN
namespace internal {

// Thread-safe.
class CodeRegistry {
 public:
  static constexpr std::size_t kMaxRanges = 4096;  // at a time
  static constexpr std::size_t kMaxNameBytes = 255;
  static constexpr std::size_t kMaxRangeBytes = 0xFFFFFFFF;

  // `fork_count` is a Platform's ForkCount.
  explicit CodeRegistry(std::uint64_t (*fork_count)() = &NoForks)
      : fork_count_(fork_count), own_fork_count_(fork_count()) {}

  // InvalidArgument for a range that cannot be, AlreadyExists for one that overlaps another,
  // ResourceExhausted beyond kMaxRanges.
  absl::Status Add(const GeneratedCode& code);
  // The range that starts there, which has been added. In a fork's child this does nothing, for
  // whoever held the lock is not here.
  void Remove(Address start);

  // Changes with every Add and Remove.
  [[nodiscard]] std::uint64_t version() const { return version_.load(std::memory_order_acquire); }

  // Makes what is registered now the generated code of `map`.
  void Join(ModuleMap& map) const;

 private:
  static std::uint64_t NoForks() { return 0; }

  std::uint64_t (*const fork_count_)();
  const std::uint64_t own_fork_count_;
  mutable std::mutex mutex_;
  std::vector<Module> ranges_;  // sorted by start
  std::uint64_t last_number_ = 0;
  std::atomic<std::uint64_t> version_{0};
};

template <class Traits>
class ProfilerCore;

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
      : status_(std::exchange(other.status_, MovedAway())),
        registry_(std::move(other.registry_)),
        start_(other.start_) {}
  CodeRegistration& operator=(CodeRegistration&& other) noexcept {
    if (this != &other) {
      End();
      status_ = std::exchange(other.status_, MovedAway());
      registry_ = std::move(other.registry_);
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

  explicit CodeRegistration(absl::Status status) : status_(std::move(status)) {}
  CodeRegistration(std::shared_ptr<internal::CodeRegistry> registry, const GeneratedCode& code)
      : status_(registry->Add(code)), start_(reinterpret_cast<Address>(code.start)) {
    if (status_.ok()) registry_ = std::move(registry);
  }

  static absl::Status MovedAway() {
    return absl::CancelledError("the registration was moved away");
  }

  void End() {
    if (registry_ != nullptr) std::exchange(registry_, nullptr)->Remove(start_);
  }

  absl::Status status_ = absl::CancelledError("registers nothing");
  std::shared_ptr<internal::CodeRegistry> registry_;
  Address start_ = 0;
};
STROBE_HOLDS_HIDDEN_END

}  // namespace strobe
