#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "strobe/base/address.h"

namespace strobe {

// The longest thread name that is kept, in bytes.
inline constexpr std::size_t kMaxThreadNameBytes = 63;

// The bounds of a thread's stack: reads are valid in [low, high). Both are zero if unknown.
struct StackBounds {
  Address low = 0;
  Address high = 0;
  // True if the system extends the stack downwards on use. Memory below `low` may then have become
  // part of the stack.
  bool grows = false;

  [[nodiscard]] bool empty() const { return high <= low; }
  [[nodiscard]] bool Holds(Address address) const { return address >= low && address < high; }
  // True if a walk whose outermost frame has this stack pointer has ended on another stack, as a
  // coroutine's. False if the unwinder does not report it (0), or the bounds are unknown.
  [[nodiscard]] bool IsLeftAt(Address sp) const {
    return sp != 0 && !empty() && (sp < low || sp > high);
  }
};

// What a look at a thread from outside finds: see Platform.
enum class ThreadPoll : std::uint8_t { kHasNotRun, kHasRun, kRuns };

// What a thread does, as another thread sees it: see Platform.
struct ThreadActivity {
  enum class Kind : std::uint8_t {
    kUnknown,  // the system does not tell
    kReady,    // it is on a CPU, or could be
    kWaits,    // for anything but a CPU
  };
  Kind kind = Kind::kUnknown;
  // Of kWaits: the registers that the thread will continue with. Until then its stack stays as it
  // is.
  Address pc = 0;
  Address sp = 0;
};

// A platform's data about a thread. The thread itself reads them when it registers.
struct ThreadInfo {
  std::uint64_t id = 0;  // the system's thread id
  StackBounds stack;
};

// A thread of the program, whether it is registered or not.
struct ProgramThread {
  std::uint64_t id = 0;
  std::int64_t cpu_ns = 0;  // what its CPU clock reads
};

// `text`, cut at a character to at most `max_bytes` bytes. '?' replaces every byte that is not
// valid UTF-8, and a space every character that controls a terminal or the direction of text.
std::string SanitizedText(std::string_view text, std::size_t max_bytes);

// SanitizedText of a thread's name, of which kMaxThreadNameBytes are kept.
std::string SanitizedThreadName(std::string_view name);

// `text` with every byte that is not part of valid UTF-8 replaced by '?'. proto3 refuses a whole
// message for one bad string.
std::string ValidUtf8(std::string_view text);

}  // namespace strobe
