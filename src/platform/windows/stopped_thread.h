// Stops a thread while its registers and its stack are copied.
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

// A thread that has registered itself. Holds all that is needed to stop the thread, so that nothing
// must be looked up then.
class KnownThread {
 public:
  // The calling thread; nullptr if the system refuses a handle. Find() finds it until it ends. The
  // first call waits for the loader's lock.
  static std::shared_ptr<KnownThread> Current();
  // nullptr if no such thread has called Current(), or if it has ended.
  static std::shared_ptr<KnownThread> Find(std::uint64_t thread_id);

  KnownThread(void* handle, const void* block) : handle_(handle), block_(block) {}
  ~KnownThread();
  KnownThread(const KnownThread&) = delete;
  KnownThread& operator=(const KnownThread&) = delete;

  [[nodiscard]] void* handle() const { return handle_; }
  // The thread's environment block, which has the bounds of its current stack, also of a fiber's.
  // Valid while the thread lives.
  [[nodiscard]] const void* block() const { return block_; }
  // How many times the thread stayed stopped too long. The stopping thread counts.
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

// The watchdog resumes a thread after this time. After this many times, the thread is not stopped
// any more.
inline constexpr std::int64_t kMaxStopMs = 500;
inline constexpr int kMaxStalls = 5;

// Suspends the thread, copies its registers and its stack, and resumes it. While it is suspended,
// nothing allocates, locks, logs or loads. False if the thread has ended, runs on an unknown stack,
// or has stalled too often; if the watchdog resumed it during the copy; or if the ExitLock is not
// free. `while_stopped` is for tests. One caller at a time.
bool CopyStack(KnownThread& thread, StackCopy& copy, void (*while_stopped)() = nullptr);

// Starts the watchdog, once a process. False if the system refuses.
bool StartWatchdog();

}  // namespace strobe::internal
