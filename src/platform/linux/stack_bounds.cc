#include "stack_bounds.h"

#include <pthread.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cstddef>
#include <cstring>

// glibc's: the top of the initial thread's stack. Weak: not every C library has it.
extern "C" __attribute__((weak)) void* __libc_stack_end;  // NOLINT(bugprone-reserved-identifier)

namespace strobe::internal {
namespace {

// Asks the C library, which also collects the thread's affinity, in several allocations of that thread.
StackBounds AskLibrary() {
  pthread_attr_t attributes;
  if (pthread_getattr_np(pthread_self(), &attributes) != 0) return {};
  void* low = nullptr;
  std::size_t size = 0;
  const bool is_known = pthread_attr_getstack(&attributes, &low, &size) == 0;
  pthread_attr_destroy(&attributes);
  if (!is_known) return {};
  return {.low = reinterpret_cast<Address>(low), .high = reinterpret_cast<Address>(low) + size};
}

// How glibc's own record of a thread, which begins at pthread_self() and lies in the stack's block, describes that block: three words in a
// row. Where they stand differs from version to version; it is found by the library's answer for the first thread that asks.
struct BlockRecord {
  Address begin;
  std::size_t bytes;
  std::size_t guard_bytes;

  [[nodiscard]] StackBounds bounds() const { return {.low = begin + guard_bytes, .high = begin + bytes}; }
};
constexpr std::size_t kMaxRecordOffset = 4096;
constexpr std::size_t kUnknown = 0;
constexpr std::size_t kNotFound = 1;
constinit std::atomic<std::size_t> record_offset{kUnknown};

BlockRecord ReadRecord(std::size_t offset) {
  BlockRecord record;
  std::memcpy(&record, reinterpret_cast<const void*>(pthread_self() + offset), sizeof(record));  // NOLINT(performance-no-int-to-ptr)
  return record;
}

std::size_t FindRecord(const StackBounds& bounds) {
  const Address self = pthread_self();
  if (self < bounds.low || self >= bounds.high) return kNotFound;
  for (std::size_t offset = sizeof(Address); offset < kMaxRecordOffset && self + offset + sizeof(BlockRecord) <= bounds.high;
       offset += sizeof(Address)) {
    const StackBounds said = ReadRecord(offset).bounds();
    if (said.low == bounds.low && said.high == bounds.high) return offset;
  }
  return kNotFound;
}

}  // namespace

StackBounds CurrentStackBounds() {
  const auto here = reinterpret_cast<Address>(__builtin_frame_address(0));
  // A fork's child has its parent's number for its only thread, whatever stack the thread that forked was on.
  if (getpid() == static_cast<pid_t>(syscall(SYS_gettid)) && &__libc_stack_end != nullptr && __libc_stack_end != nullptr) {
    // The initial thread's stack grows on demand: what is below is not mapped yet, and its limit only says how far it may grow.
    const auto high = reinterpret_cast<Address>(__libc_stack_end);
    rlimit limit{};
    constexpr Address kUnlimited = Address{1} << 30;
    const bool is_limited = getrlimit(RLIMIT_STACK, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY;
    const Address size = is_limited ? limit.rlim_cur : kUnlimited;
    const StackBounds bounds{.low = high > size ? high - size : 0, .high = high};
    if (bounds.Holds(here)) return bounds;
  }
  const std::size_t offset = record_offset.load(std::memory_order_relaxed);
  if (offset == kUnknown) {
    const StackBounds bounds = AskLibrary();
    if (!bounds.empty()) record_offset.store(FindRecord(bounds), std::memory_order_relaxed);
    return bounds;
  }
  if (offset == kNotFound) return AskLibrary();
  const StackBounds bounds = ReadRecord(offset).bounds();
  // Believed where it holds what it must: this very frame, and the record itself.
  const Address self = pthread_self();
  const bool is_plausible = bounds.low <= here && here < self && self < bounds.high;
  return is_plausible ? bounds : AskLibrary();
}

}  // namespace strobe::internal
