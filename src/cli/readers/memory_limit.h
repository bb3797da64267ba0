// MemoryLimit: how much memory the reading of a file may take. Each allocation asks, so that no
// file, however it is made, takes more for a moment either.
#pragma once

#include <cstddef>
#include <cstdint>
#include <new>
#include <utility>

#include "absl/status/status.h"
#include "profile/profile_builder.h"

namespace strobe::internal {

// By default a file may take this many times its own bytes: few real ones take a tenth of that.
inline constexpr std::size_t kMemoryOfFileByte = 64;
// But a small one may take this much. gzip packs what repeats a thousandfold.
inline constexpr std::size_t kLeastProfileMemory = std::size_t{256} << 20;
// And a recording of perf this much, because it names programs, whose tables are read as well.
inline constexpr std::size_t kLeastPerfMemory = std::size_t{1} << 30;
// No file may take more.
static_assert(kLeastPerfMemory < kMaxProfileBytes);

// The limit is that of the constructing thread, until the object ends. One at a time in a thread.
class MemoryLimit {
 public:
  // `asked_bytes` holds for a file of any size; 0 takes the default, and at least `least_bytes`.
  explicit MemoryLimit(std::size_t asked_bytes, std::size_t least_bytes = kLeastProfileMemory);
  ~MemoryLimit();
  MemoryLimit(const MemoryLimit&) = delete;
  MemoryLimit& operator=(const MemoryLimit&) = delete;

  // The file has at least so many bytes, compressed as it is.
  void HasFileBytes(std::uint64_t bytes);
  // What the thread may hold more than at the object's begin.
  [[nodiscard]] std::size_t bytes() const { return bytes_; }

  // read(), or ResourceExhausted if that takes more.
  template <class Read>
  auto Within(Read&& read) -> decltype(read()) {
    try {
      return std::forward<Read>(read)();
    } catch (const std::bad_alloc&) {
      return Exceeded();
    }
  }

 private:
  [[nodiscard]] absl::Status Exceeded() const;

  const bool is_asked_;
  std::size_t bytes_;
};

// The bytes of a block of malloc's.
std::size_t HeapBlockBytes(void* block) noexcept;

}  // namespace strobe::internal
