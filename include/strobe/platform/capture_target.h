// What a platform's handler passes to a capture. Data plane; needs no header of an operating
// system.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "strobe/arch/registers.h"
#include "strobe/base/visibility.h"
#include "strobe/platform/registration_link.h"
#include "strobe/unwind/stack_memory.h"

namespace strobe {
namespace STROBE_HIDDEN internal {

// Its address identifies this copy of the library: a program and its plug-ins may each have linked
// one, and a copy must not take the signals of another.
extern const char copy_anchor;

// Identifies one registration in a signal's payload: the copy of the library, the arena, the
// channel, the use of that channel, and the provider that made the request. It has no pointers,
// because a signal may arrive long after the registration has ended.
struct ChannelToken {
  std::uint8_t arena = 0;
  std::uint8_t provider = 0;
  std::uint16_t use =
      0;  // counts the sessions and registrations that the channel has served, modulo 2^16
  std::uint32_t index = 0;  // of the channel

  static constexpr unsigned kIndexBits = 18;
  static constexpr unsigned kArenaBits = 5;
  static constexpr unsigned kProviderBits = 3;
  static constexpr unsigned kUseBits = 16;
  static constexpr unsigned kArenaShift = kIndexBits;
  static constexpr unsigned kProviderShift = kArenaShift + kArenaBits;
  static constexpr unsigned kUseShift = kProviderShift + kProviderBits;
  static constexpr unsigned kCopyShift = kUseShift + kUseBits;

  // The other bits. They differ from those of the program's payloads and of other copies.
  [[nodiscard]] static std::uint64_t CopyMark() {
    constexpr std::uint64_t kSpread =
        0x9E3779B97F4A7C15;  // 2^64 / golden ratio: neighbours come to lie far apart
    return static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(&copy_anchor)) * kSpread >>
           kCopyShift;
  }

  [[nodiscard]] std::uint64_t Pack() const {
    return CopyMark() << kCopyShift | std::uint64_t{use} << kUseShift |
           (std::uint64_t{provider} & Mask(kProviderBits)) << kProviderShift |
           (std::uint64_t{arena} & Mask(kArenaBits)) << kArenaShift |
           (std::uint64_t{index} & Mask(kIndexBits));
  }
  // False if `payload` is not from this copy of the library.
  static bool Unpack(std::uint64_t payload, ChannelToken& token) {
    if (payload >> kCopyShift != CopyMark()) return false;
    token = {.arena = static_cast<std::uint8_t>(payload >> kArenaShift & Mask(kArenaBits)),
             .provider = static_cast<std::uint8_t>(payload >> kProviderShift & Mask(kProviderBits)),
             .use = static_cast<std::uint16_t>(payload >> kUseShift),
             .index = static_cast<std::uint32_t>(payload & Mask(kIndexBits))};
    return true;
  }

 private:
  static constexpr std::uint64_t Mask(unsigned bits) { return (std::uint64_t{1} << bits) - 1; }
};

// One interruption of a thread. The thread itself captures; on a platform that copies stacks,
// another thread captures while the interrupted one runs on.
struct CaptureTarget {
  ChannelToken token;
  std::int64_t timer_expiries = 0;             // that this interruption stands for; 0 for a request
  const NativeRegisters* registers = nullptr;  // nullptr if the system gave none
  const CopiedStackMemory* stack = nullptr;    // on a platform that copies stacks
  // The interrupted code ran on an alternate stack for signals. That stack may lie inside the
  // thread's own, above the frames that were active before.
  bool is_on_alternate_stack = false;
  // A request at an instant, which the thread got so much later that it had no CPU then. Its weight
  // is not this thread's.
  bool is_late = false;
};

// How the handler reaches a profiler: type-erased, so that the handler is compiled once and no
// user's code sees an OS header. One entry an arena, in a static table, never freed.
struct CaptureEntry {
  // False if the token's registration has ended. Signal-safe.
  using Function = bool (*)(void* context, const CaptureTarget& target);
  std::atomic<Function> function{nullptr};
  void* context = nullptr;  // written before `function`
};
inline constexpr std::size_t kMaxArenas = std::size_t{1} << ChannelToken::kArenaBits;
CaptureEntry& CaptureEntryOf(std::size_t arena);

// The handler's counters, over all profilers.
struct HandlerCounters {
  std::atomic<std::uint64_t> foreign{0};
  std::atomic<std::uint64_t> stale{0};
  // On a platform that stops threads: living threads that are not stopped any more, because they
  // stayed stopped too long too often.
  std::atomic<std::uint64_t> threads_given_up{0};
};
HandlerCounters& GlobalHandlerCounters();

}  // namespace internal
}  // namespace strobe
