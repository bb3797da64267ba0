// CodeRegistry: the generated code that is registered now.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <vector>

#include "absl/status/status.h"
#include "strobe/base/address.h"
#include "strobe/base/visibility.h"
#include "strobe/core/generated_code.h"
#include "strobe/core/module_map.h"

namespace strobe {
namespace STROBE_HIDDEN internal {

// Thread-safe.
class CodeRegistry final : public GeneratedCodeOwner {
 public:
  static constexpr std::size_t kMaxRanges = 4096;  // at a time
  static constexpr std::size_t kMaxRangeBytes = 0xFFFFFFFF;

  // `fork_count` is a Platform's ForkCount.
  explicit CodeRegistry(std::uint64_t (*fork_count)() = &NoForks)
      : fork_count_(fork_count), own_fork_count_(fork_count()) {}

  // InvalidArgument for an impossible range, AlreadyExists for a range that overlaps another,
  // ResourceExhausted beyond kMaxRanges.
  absl::Status Add(const GeneratedCode& code) override;
  // Removes the range that starts at `start`, which has been added. Does nothing in a fork's child,
  // because the thread that holds the lock may not exist there.
  void Remove(Address start) override;

  // Changes with every Add and Remove.
  [[nodiscard]] std::uint64_t version() const { return version_.load(std::memory_order_acquire); }

  // Replaces the generated code of `map` by the ranges that are registered now.
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

}  // namespace internal
}  // namespace strobe
