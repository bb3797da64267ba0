// SharedRanges: the generated code that a program has registered, in memory that its worker reads
// also after the program's end.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "strobe/base/address.h"
#include "strobe/base/visibility.h"
#include "strobe/core/generated_code.h"
#include "strobe/runtime/code/code_registry.h"

namespace strobe {
namespace STROBE_HIDDEN internal {

// It begins as zeroed memory. Any thread, without a lock: a fork's child would wait for a thread
// that it does not have.
class SharedRanges {
 public:
  static constexpr std::size_t kMaxRanges = CodeRegistry::kMaxRanges;

  // A range as the worker has read it: any numbers.
  struct Range {
    std::uint64_t number = 0;  // of the registration; never used again
    Address start = 0;
    std::uint64_t bytes = 0;
    Address eh_frame_address = 0;
    std::uint64_t eh_frame_bytes = 0;
    std::string name;
  };

  // In the program. Returns false if there are kMaxRanges.
  bool Add(const GeneratedCode& code) noexcept;
  // Removes a range that starts there, if there is one.
  void Remove(Address start) noexcept;

  // Changes after each of these calls.
  [[nodiscard]] std::uint64_t version() const { return version_.load(std::memory_order_acquire); }
  // In the worker: the ranges that are there.
  [[nodiscard]] std::vector<Range> Copy() const;

 private:
  static constexpr std::size_t kNameWords = (GeneratedCode::kMaxNameBytes + 1) / 8;

  // A range is there while its number is neither of these.
  static constexpr std::uint64_t kFree = 0;
  static constexpr std::uint64_t kInWork = ~std::uint64_t{0};
  struct Place {
    std::atomic<std::uint64_t> number;
    std::atomic<std::uint64_t> start;
    std::atomic<std::uint64_t> bytes;
    std::atomic<std::uint64_t> eh_frame_address;
    std::atomic<std::uint64_t> eh_frame_bytes;
    std::atomic<std::uint64_t> name_bytes;
    std::array<std::atomic<std::uint64_t>, kNameWords> name;
  };

  static void Fill(Place& place, const GeneratedCode& code) noexcept;
  static Range Read(const Place& place);

  std::atomic<std::uint64_t> version_{0};
  std::atomic<std::uint64_t> last_number_{0};
  std::array<Place, kMaxRanges> places_{};
};

}  // namespace internal
}  // namespace strobe
