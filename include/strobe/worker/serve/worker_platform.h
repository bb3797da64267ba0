// WorkerPlatform: the platform of a worker, whose threads and memory are those of the program that
// it serves.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "strobe/base/visibility.h"
#include "strobe/core/module_map.h"
#include "strobe/core/thread_info.h"
#include "strobe/platform/linux/linux_platform.h"
#include "strobe/runtime/code/published_code.h"
#include "strobe/unwind/cfi_modules.h"
#include "strobe/unwind/unwind_table.h"
#include "strobe/worker/shared/shared_area.h"
#include "strobe/worker/shared/table_store.h"

namespace strobe {
namespace STROBE_HIDDEN internal {

// The program that a thread serves.
struct ServedProgram {
  std::uint64_t process_id = 0;
  std::string name;
  int signal = 0;
  std::uint64_t copy_mark = 0;  // see ChannelToken
  std::uint32_t worker = 0;     // this one's number: see SharedAreaHeader
  SharedArea area;
  TableMemory tables;                   // none if the program could not map it
  std::shared_ptr<TableStore> store{};  // of all programs; nullptr if there is none
  Address store_address = 0;            // of its memory in the program; 0 if it is not there
  bool is_own = false;                  // this process is the program: a fallback
};

// Observes a thread of the program.
class WorkerThreadProbe {
 public:
  explicit WorkerThreadProbe(std::uint64_t thread_id) : thread_id_(thread_id) {}

  // kRuns also of a thread that could run and was not displaced: whether it had a CPU, the thread
  // itself knows when it gets the request (CaptureTarget::is_late).
  ThreadPoll Poll();
  // What the last Poll has found.
  [[nodiscard]] bool WasDisplaced(const LinuxInstant& /*instant*/) const { return was_displaced_; }
  int LastCpu() { return probe_.LastCpu(); }
  bool YieldsAtOnce() { return probe_.YieldsAtOnce(); }
  ThreadActivity Observe() { return probe_.Observe(); }
  [[nodiscard]] std::int64_t seen_cpu_ns() const { return seen_cpu_ns_; }
  std::int64_t WaitCount() { return probe_.WaitCount(); }
  bool BlocksSignal(int signal) { return probe_.BlocksSignal(signal); }

 private:
  std::uint64_t thread_id_;
  std::int64_t seen_cpu_ns_ = -1;
  bool was_displaced_ = false;
  LinuxThreadFile schedstat_;
  LinuxThreadProbe probe_{thread_id_};
};

// A process may serve several programs, each by threads of its own: all calls of a thread are about
// the program that it serves. Of a program that has ended, the clocks read what was read last, and
// memory is what its files have.
struct WorkerPlatform : LinuxPlatform {
  static constexpr bool kAdoptsChannels = true;
  using ThreadProbe = WorkerThreadProbe;

  // Whether the system lets this process see what the other one maps: not if that is not dumpable
  // (prctl(PR_SET_DUMPABLE), a change of user), or another user's.
  static bool MayObserve(std::uint64_t process_id);
  // From now on the calling thread serves this program, as do the threads that it begins by
  // RunOnOwnThread. The last of these threads to end frees what is known of the program, and unmaps
  // its memory, unless this process is the program.
  static void Serve(ServedProgram program);
  static OwnThread RunOnOwnThread(const char* name, std::function<void()> body);
  // True if the program has ended. Its children may still have what was its own, the socket too.
  // Where the system does not tell, false.
  static bool HasEnded();
  // False if the program has taken its area back: it has lost this worker, and waited for it in
  // vain. All that is read and written there from then on is this process's own, and worth nothing.
  static bool HasArea();
  // True if the program has lost this worker, which is to end its session.
  static bool IsWantedBack();
  // When all has been drained, and the last period has ended: what the worker has not exported yet
  // counts as exported. False if the program has taken the area back: then that counts as lost.
  static bool GiveBackArea();
  // How the program has ended: see EndOfProcess. Call it when its connection has ended.
  static std::string HowEnded();
  // What the thread itself has read of its CPU clock: at the begin and the end of its registration.
  static void NoteClock(std::uint64_t thread_id, std::int64_t cpu_ns);
  // The thread's registration has ended, and its account is settled.
  static void ForgetClock(std::uint64_t thread_id);

  static PublishedCode& SharedCode() noexcept;
  static Mapping MapMemory(std::uint64_t bytes);
  static void DiscardMemory(void* memory, std::uint64_t bytes);
  // The account of the thread in that thread begins.
  static void NoteThread(std::uint32_t thread, std::uint64_t thread_id);
  // The program may use the thread for another thread.
  static void GiveBack(std::uint32_t thread);
  // From the store of tables that the programs share.
  static std::shared_ptr<const UnwindTable> ShareTable(const Module& module, std::size_t chunk,
                                                       const CfiModules::BuildTable& build);
  // See ExportMarks.
  static void EndPeriod(std::uint64_t sequence, std::span<const std::int64_t> sums);
  static void NoteExported(std::uint64_t sequence);
  // A copy in the memory for tables. Where that has no room, captures send registers and stack
  // along, and the worker walks.
  static std::shared_ptr<const UnwindModules> ExposeTables(
      const std::shared_ptr<const UnwindModules>& tables);

  static std::uint64_t ProcessId();
  static std::string ProgramName();
  static std::int64_t ProcessMemoryBytes();
  static LabelSet MachineTags();
  // The kernel brings the clock of a running thread up to date, for other processes, at its ticks
  // only. That of a thread of the worker is 0: it takes no time of the program.
  static std::int64_t ThreadCpuTimeNs(std::uint64_t thread_id);
  static std::int64_t ProcessCpuTimeNs();
  static std::vector<ProgramThread> ProgramThreads();
  static std::string ThreadName(std::uint64_t thread_id);
  // Those of a worker that is another process take no time of the program.
  static std::int64_t OwnCpuTimeNs();

  static int DefaultSignal();
  static absl::Status InstallHandler(int /*signal*/) { return absl::OkStatus(); }
  static HandlerState HandlerStateOf(int /*signal*/) { return HandlerState::kOurs; }
  static std::uint64_t BlockedSignals(std::uint64_t thread_id);
  static void SetSignalBlocked(int /*signal*/, bool /*is_blocked*/) {}
  // A process has no timers on the clocks of another's threads.
  static bool StartTimer(Timer& /*timer*/, std::uint64_t /*thread_id*/, std::uint64_t /*payload*/,
                         std::int64_t /*first_ns*/, std::int64_t /*period_ns*/, int /*signal*/) {
    return false;
  }
  static void StopTimer(Timer& /*timer*/) {}
  static bool StartRandomTimer(RandomTimer& /*timer*/, std::uint64_t /*thread_id*/,
                               std::uint8_t /*provider*/, std::int64_t /*mean_ns*/,
                               std::uint64_t /*seed*/, int /*signal*/) {
    return false;
  }
  static void StopRandomTimer(RandomTimer& /*timer*/) {}
  static bool Interrupt(std::uint64_t thread_id, std::uint64_t payload, int signal,
                        bool was_running);

  // By the kernel's list of mappings. Reading it takes at most a hundredth of the time.
  static std::uint64_t ModuleVersion();
  static std::vector<Module> Modules();
  static std::size_t ReadMemory(std::uint64_t address, std::span<std::uint8_t> bytes);
};
static_assert(Platform<WorkerPlatform> && ObservesWaits<WorkerPlatform> &&
              AdoptsChannels<WorkerPlatform>);

}  // namespace internal
}  // namespace strobe
