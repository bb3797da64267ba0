#include "stack_bounds.h"

#include <pthread.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "strobe/base/page.h"
#include "strobe/platform/linux/linux_platform.h"

// glibc's: the top of the initial thread's stack. Weak: not every C library has it.
extern "C" __attribute__((weak)) void* __libc_stack_end;  // NOLINT(bugprone-reserved-identifier)

namespace strobe::internal {
namespace {

// Calls the C library, which also reads the thread's affinity, with several allocations.
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

// Three consecutive words of glibc's record of a thread, which describe the block of its stack. The
// record begins at pthread_self(), and lies in that block. The offset of the words depends on the
// version. It is found by comparison with AskLibrary() on the first thread.
struct BlockRecord {
  Address begin;
  std::size_t bytes;
  std::size_t guard_bytes;

  [[nodiscard]] StackBounds bounds() const {
    return {.low = begin + guard_bytes, .high = begin + bytes};
  }
};
constexpr std::size_t kMaxRecordOffset = 4096;
// The most that is checked of the initial thread's stack when that thread registers.
constexpr Address kMaxUsedBytes = Address{64} << 20;
constexpr std::size_t kUnknown = 0;
constexpr std::size_t kNotFound = 1;
constinit std::atomic<std::size_t> record_offset{kUnknown};

BlockRecord ReadRecord(std::size_t offset) {
  BlockRecord record;
  // NOLINTNEXTLINE(performance-no-int-to-ptr)
  std::memcpy(&record, reinterpret_cast<const void*>(pthread_self() + offset), sizeof(record));
  return record;
}

std::size_t FindRecord(const StackBounds& bounds) {
  const Address self = pthread_self();
  if (self < bounds.low || self >= bounds.high) return kNotFound;
  for (std::size_t offset = sizeof(Address);
       offset < kMaxRecordOffset && self + offset + sizeof(BlockRecord) <= bounds.high;
       offset += sizeof(Address)) {
    const StackBounds said = ReadRecord(offset).bounds();
    if (said.low == bounds.low && said.high == bounds.high) return offset;
  }
  return kNotFound;
}

// True if all of [begin, end) can be read.
bool IsReadable(Address begin, Address end) {
  std::array<std::uint8_t, kPageBytes> page;
  for (; begin < end; begin += page.size()) {
    const std::span<std::uint8_t> piece =
        std::span(page).first(std::min<std::size_t>(page.size(), end - begin));
    if (LinuxPlatform::ReadMemory(begin, piece) != piece.size()) return false;
  }
  return true;
}

// The stack of a thread that the C library has made. With glibc, by the library's record of the
// thread.
StackBounds BoundsOfMadeThread(Address here) {
  const Address self = pthread_self();
  const std::size_t offset = record_offset.load(std::memory_order_relaxed);
  if (offset != kUnknown && offset != kNotFound) {
    const StackBounds bounds = ReadRecord(offset).bounds();
    // Used only if the stack holds this frame and the record itself.
    if (bounds.low <= here && here < self && self < bounds.high) return bounds;
  }
  const StackBounds bounds = AskLibrary();
  if (offset == kUnknown && bounds.Holds(self))
    record_offset.store(FindRecord(bounds), std::memory_order_relaxed);
  return bounds;
}

// The initial thread's stack grows on demand. Its limit only says how far it may grow: other memory
// may be mapped within that distance. Only the part that the thread has used is known to be stack.
StackBounds BoundsOfInitialThread(Address here) {
  const bool has_end = &__libc_stack_end != nullptr && __libc_stack_end != nullptr;
  const Address high = has_end ? reinterpret_cast<Address>(__libc_stack_end) : AskLibrary().high;
  // If the handler cannot read memory by system calls, it cannot see how far the stack has grown,
  // and the limit counts. The kernel maps nothing by itself within 128 MiB.
  std::array<std::uint8_t, sizeof(Address)> probe;
  if (LinuxPlatform::ReadStack(here, probe) != probe.size()) {
    rlimit limit{};
    const bool is_limited = getrlimit(RLIMIT_STACK, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY;
    return {.low = high -
                   (is_limited ? std::min<Address>(limit.rlim_cur, kMaxUsedBytes) : kMaxUsedBytes),
            .high = high};
  }
  const Address low = PageOf(here);
  const bool is_on_it = low < high && high - low <= kMaxUsedBytes && IsReadable(low, high);
  return {.low = is_on_it ? low : PageOf(high), .high = high, .grows = true};
}

}  // namespace

StackBounds CurrentStackBounds() {
  const auto here = reinterpret_cast<Address>(__builtin_frame_address(0));
  if (getpid() != static_cast<pid_t>(syscall(SYS_gettid))) return BoundsOfMadeThread(here);
  const StackBounds initial = BoundsOfInitialThread(here);
  if (initial.Holds(here)) return initial;
  // This is a coroutine of the initial thread; or the only thread of a fork's child. That thread's
  // id is the process id, even if the thread that forked was not the initial one.
  const StackBounds made = BoundsOfMadeThread(here);
  return made.Holds(pthread_self()) ? made : initial;
}

}  // namespace strobe::internal
