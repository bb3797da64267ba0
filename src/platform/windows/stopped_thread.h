// Stopping a thread for as long as it takes to copy its registers and its stack.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "strobe/arch/registers.h"
#include "strobe/base/address.h"

namespace strobe::internal {

// A thread that has registered itself: all that is needed to stop it is resolved here, beforehand.
class KnownThread {
 public:
  // The calling thread; nullptr where the system refuses a handle. Found by its id until it ends.
  // The first call waits for the loader's lock.
  static std::shared_ptr<KnownThread> Current();
  // nullptr where no such thread has called Current(), or it has ended.
  static std::shared_ptr<KnownThread> Find(std::uint64_t thread_id);

  KnownThread(void* handle, const void* block) : handle_(handle), block_(block) {}
  ~KnownThread();
  KnownThread(const KnownThread&) = delete;
  KnownThread& operator=(const KnownThread&) = delete;

  [[nodiscard]] void* handle() const { return handle_; }
  // The thread's own block, which says where its stack is now, a fiber's too. Valid while the
  // thread lives.
  [[nodiscard]] const void* block() const { return block_; }
  // How many times it stayed stopped too long. The stopping thread counts.
  std::atomic<int> stalls{0};

 private:
  void* handle_;
  const void* block_;
};

// How often a thread was stopped, and how often the watchdog had to resume one.
struct StopCounters {
  std::atomic<std::uint64_t> stopped{0};
  std::atomic<std::uint64_t> resumed{0};
};
StopCounters& GlobalStopCounters();

// Room for one copy. Large, and committed when touched.
struct StackCopy {
  static constexpr std::size_t kMaxBytes = std::size_t{1} << 20;

  NativeRegisters registers;  // `general` points into this copy
  std::array<Address, kX86_64GeneralRegisters> words{};
  const X86_64GeneralRegisters general{words.data()};
  Address base = 0;            // the stack pointer
  std::size_t byte_count = 0;  // up to the stack's end, if that is not too far
  alignas(16) std::array<std::byte, kMaxBytes> bytes;

  [[nodiscard]] std::span<const std::byte> stack() const { return {bytes.data(), byte_count}; }
};

// After this long the watchdog resumes a thread, and after this many times a thread is left in
// peace.
inline constexpr std::int64_t kMaxStopMs = 500;
inline constexpr int kMaxStalls = 5;

// Suspends the thread, copies its registers and its stack, and resumes it; between the two nothing
// allocates, locks, logs or loads. False where it has ended, runs on no stack that is known, has
// stalled too often, or stayed stopped too long, so that it was resumed while it was being copied;
// and where there is no ExitLock just now. `while_stopped` is a test's. One caller at a time.
bool CopyStack(KnownThread& thread, StackCopy& copy, void (*while_stopped)() = nullptr);

// Starts the watchdog, once a process; false where the system refuses.
bool StartWatchdog();

}  // namespace strobe::internal
