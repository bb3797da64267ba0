#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <charconv>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>

#include "memory/process_memory.h"
#include "signals/forks.h"
#include "signals/thread_files.h"
#include "strobe/platform/linux/descriptor.h"
#include "strobe/platform/linux/linux_platform.h"
#include "strobe/platform/linux/linux_thread_probe.h"
#include "strobe/platform/linux/own_files.h"
#include "strobe/platform/signal_set.h"

namespace strobe::internal {
namespace {

// The scheduler reads its clock once when it switches from one thread to the next. So a displaced
// thread stopped when its successor began, but for what the clock of one CPU may go back.
constexpr std::int64_t kSwitchNs = 2'000;

// The calling thread's start advances when the scheduler brings its account up to date, for example
// when a thread wakes on the same CPU. So an instant reads it at once if one of that many instants
// before needed it.
constexpr int kInstantsExpected = 32;
thread_local int instants_expected = 0;
// A file that stays open.
struct KeptFile {
  // Twice the number of the process that keeps it, and 1 more while a thread changes the place, or
  // the file has been left.
  std::atomic<std::uint32_t> owner{0};
  std::atomic<bool> is_left{false};
  bool is_programs = false;  // one of the program's files, not of a thread's own
  std::atomic<int> number{-1};
  std::atomic<std::uint64_t> event{0};  // of the file's identity
  KnownFile file;
};
constinit std::array<KeptFile, LinuxThreadFile::kMaxKeptFiles> kept_thread_files{};
constinit std::atomic<bool> are_files_left{false};

// Of this process among its parents, never 0. It wraps.
std::uint32_t ThisProcess() {
  constexpr std::uint32_t kMost = INT_MAX / LinuxThreadFile::kMaxKeptFiles;
  return static_cast<std::uint32_t>((ForkCount() - 1) % kMost) + 1;
}
STROBE_SIGNAL_SAFE std::size_t PlaceOf(int handle) {
  return static_cast<std::size_t>(handle % LinuxThreadFile::kMaxKeptFiles);
}
std::uint32_t ProcessOf(int handle) {
  return static_cast<std::uint32_t>(handle / LinuxThreadFile::kMaxKeptFiles);
}

// The directory of the threads' files.
constinit thread_local char task_directory[40] = "/proc/self/task";

// On a thread that has the program's files: closes what others have left.
void CloseLeftFiles() {
  if (!are_files_left.exchange(false, std::memory_order_acq_rel)) return;
  for (KeptFile& kept : kept_thread_files) {
    if (kept.owner.load(std::memory_order_acquire) != 2 * ThisProcess() + 1 ||
        !kept.is_left.exchange(false, std::memory_order_acq_rel))
      continue;
    kept.file.Close();
    kept.owner.store(0, std::memory_order_release);
  }
}

// Has the place to itself until it sets the owner. nullptr if this process keeps no file there.
KeptFile* TakeKeptFile(int handle) {
  KeptFile& kept = kept_thread_files[PlaceOf(handle)];
  const std::uint32_t own = ProcessOf(handle);
  std::uint32_t owner = 2 * own;
  if (own != ThisProcess() ||
      !kept.owner.compare_exchange_strong(owner, owner + 1, std::memory_order_acq_rel))
    return nullptr;
  kept.number.store(-1, std::memory_order_relaxed);
  return &kept;
}

int MostKeptFiles() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return 0;
  return static_cast<int>(std::min<rlim_t>(limit.rlim_cur / 8, LinuxThreadFile::kMaxKeptFiles));
}

// The number after `name` and a colon in the text of a sched or status file, in 10^-6 of its unit;
// -1 if there is none. A number without a fraction counts as it is.
std::int64_t NumberAfter(const char* text, const char* name) {
  const char* at = std::strstr(text, name);
  if (at != nullptr) at = std::strchr(at, ':');
  if (at == nullptr) return -1;
  char* end = nullptr;
  const std::int64_t whole = std::strtoll(at + 1, &end, 10);
  if (end == at + 1) return -1;
  if (*end != '.') return whole;
  return whole * 1'000'000 + std::strtoll(end + 1, nullptr, 10);
}

// The time at which the thread last ran, in nanoseconds of the scheduler's clock.
std::int64_t LastRunNs(const char* sched_text) { return NumberAfter(sched_text, "exec_start"); }

// A field of a stat file, as the manual counts them, from the third on; nullptr if the text is no
// such file.
const char* StatField(const char* stat_text, int number) {
  // The second field, a name in parentheses, may have spaces and parentheses.
  const char* at = std::strrchr(stat_text, ')');
  for (int field = 2; at != nullptr && field < number; ++field) {
    at = std::strchr(at, ' ');
    if (at != nullptr) ++at;
  }
  return at;
}

// The CPU that the thread last ran on. -1 if the text is no stat file.
int LastCpuIn(const char* stat_text) {
  constexpr int kCpuField = 39;
  const char* const at = StatField(stat_text, kCpuField);
  return at == nullptr ? -1 : static_cast<int>(std::strtol(at, nullptr, 10));
}

// Ends a text of so many bytes. False if there are none.
bool EndText(char* text, ssize_t bytes) {
  if (bytes <= 0) return false;
  text[bytes] = '\0';
  return true;
}

// Takes the last number, "0x" and hexadecimal digits, off the end of `text`; 0 if there is none.
Address TakeLastNumber(std::string_view& text) {
  const std::size_t at = text.rfind(" 0x");
  if (at == std::string_view::npos) return 0;
  Address number = 0;
  std::from_chars(text.data() + at + 3, text.data() + text.size(), number, 16);
  text = text.substr(0, at);
  return number;
}

}  // namespace

// A handle is a place and the process that keeps the file there: a fork's child inherits both the
// table and the files, and is another process.
int KeepThreadFile(const KnownFile& file) {
  const std::uint32_t own = ThisProcess();
  const bool is_programs = HasProgramFiles();
  const int most = MostKeptFiles();
  for (int place = 0; place < most; ++place) {
    KeptFile& kept = kept_thread_files[static_cast<std::size_t>(place)];
    std::uint32_t owner = kept.owner.load(std::memory_order_acquire);
    if (owner / 2 == own ||
        !kept.owner.compare_exchange_strong(owner, 2 * own + 1, std::memory_order_acq_rel))
      continue;
    kept.file.Close();  // of a parent
    kept.is_left.store(false, std::memory_order_relaxed);
    kept.is_programs = is_programs;
    kept.file = file;
    kept.event.store(file.identity.event, std::memory_order_relaxed);
    kept.number.store(file.number, std::memory_order_relaxed);
    kept.owner.store(2 * own, std::memory_order_release);
    return static_cast<int>(own) * LinuxThreadFile::kMaxKeptFiles + place;
  }
  return -1;
}

int KeptThreadFile(int handle) {
  const KeptFile& kept = kept_thread_files[PlaceOf(handle)];
  const bool is_own = kept.owner.load(std::memory_order_acquire) == 2 * ProcessOf(handle) &&
                      ProcessOf(handle) == ThisProcess();
  return is_own ? kept.file.Number() : -1;
}

void DropThreadFile(int handle) {
  KeptFile* const kept = TakeKeptFile(handle);
  if (kept == nullptr) return;
  const bool has_programs = HasProgramFiles();
  if (kept->is_programs && !has_programs) {
    // The thread has left the program's files since, and has a copy.
    if (const int copy = kept->file.Number(); copy >= 0) close(copy);
    kept->is_left.store(true, std::memory_order_release);
    are_files_left.store(true, std::memory_order_release);
    return;
  }
  kept->file.Close();
  kept->owner.store(0, std::memory_order_release);
  if (has_programs) CloseLeftFiles();
}

STROBE_SIGNAL_SAFE int ThreadFileNumber(int handle) noexcept {
  return handle < 0 ? -1
                    : kept_thread_files[PlaceOf(handle)].number.load(std::memory_order_relaxed);
}

STROBE_SIGNAL_SAFE bool IsThreadFileEvent(int handle) noexcept {
  std::uint64_t event = 0;
  return ioctl(ThreadFileNumber(handle), PERF_EVENT_IOC_ID, &event) == 0 &&
         event == kept_thread_files[PlaceOf(handle)].event.load(std::memory_order_relaxed);
}

void LinuxThreadFile::ObserveProcess(std::uint64_t process_id) {
  std::snprintf(task_directory, sizeof(task_directory), "/proc/%llu/task",
                static_cast<unsigned long long>(process_id));
}

LinuxThreadFile::LinuxThreadFile(LinuxThreadFile&& other) noexcept
    : kept_(std::exchange(other.kept_, -1)) {}
LinuxThreadFile& LinuxThreadFile::operator=(LinuxThreadFile&& other) noexcept {
  if (this != &other) {
    Close();
    kept_ = std::exchange(other.kept_, -1);
  }
  return *this;
}
LinuxThreadFile::~LinuxThreadFile() { Close(); }

void LinuxThreadFile::Close() {
  if (kept_ >= 0) DropThreadFile(std::exchange(kept_, -1));
}

bool LinuxThreadFile::ReadStart(std::uint64_t thread_id, const char* name, char* text,
                                std::size_t bytes) {
  int file = kept_ >= 0 ? KeptThreadFile(kept_) : -1;
  if (file < 0) {
    Close();
    char path[96];
    if (thread_id == kCallingThread) {
      std::snprintf(path, sizeof(path), "/proc/thread-self/%s", name);
    } else {
      std::snprintf(path, sizeof(path), "%s/%llu/%s", task_directory,
                    static_cast<unsigned long long>(thread_id), name);
    }
    KnownFile opened = KnownFile::Of(open(path, O_RDONLY | O_CLOEXEC));
    kept_ = opened.number < 0 ? -1 : KeepThreadFile(opened);
    if (kept_ < 0) {
      const ssize_t got = pread(opened.Number(), text, bytes - 1, 0);
      opened.Close();
      return EndText(text, got);
    }
    file = KeptThreadFile(kept_);
  }
  return EndText(text, pread(file, text, bytes - 1, 0));
}

LinuxInstant::LinuxInstant() {
  if (instants_expected == 0) return;
  --instants_expected;
  static_cast<void>(scheduled_ns());
}

std::int64_t LinuxInstant::scheduled_ns() const {
  if (scheduled_ns_ == kUnread) {
    char text[512];
    static thread_local LinuxThreadFile own;
    scheduled_ns_ = own.Read(LinuxThreadFile::kCallingThread, "sched", text) ? LastRunNs(text) : -1;
  }
  return scheduled_ns_;
}

std::int64_t LinuxThreadProbe::CpuTimeNs() const {
  return LinuxPlatform::ThreadCpuTimeNs(thread_id_);
}

ThreadPoll LinuxThreadProbe::Poll() {
  const std::int64_t first_ns = CpuTimeNs();
  if (first_ns == std::exchange(seen_cpu_ns_, first_ns)) return ThreadPoll::kHasNotRun;
  seen_cpu_ns_ = CpuTimeNs();
  return seen_cpu_ns_ > first_ns ? ThreadPoll::kRuns : ThreadPoll::kHasRun;
}

ThreadActivity LinuxThreadProbe::Observe() {
  using Kind = ThreadActivity::Kind;
  char text[256];
  if (!syscall_.Read(thread_id_, "syscall", text)) return {};
  std::string_view left(text);
  if (left.starts_with("running")) return {.kind = Kind::kReady};
  // The last numbers are the stack pointer and the program counter, whether the thread waits in a
  // system call or, after "-1", elsewhere.
  const Address pc = TakeLastNumber(left);
  const Address sp = TakeLastNumber(left);
  if (pc == 0 || sp == 0) return {};
  return {.kind = Kind::kWaits, .pc = pc, .sp = sp};
}

// True if the thread runs or could run.
bool LinuxThreadProbe::IsReady() {
  char text[16];
  return syscall_.Read(thread_id_, "syscall", text) && std::strncmp(text, "running", 7) == 0;
}

// A thread that could run but does not, waits for a CPU. If its last CPU is the calling thread's,
// and it stopped running when the calling thread began, the calling thread has displaced it.
bool LinuxThreadProbe::WasDisplaced(const LinuxInstant& instant) {
  if (!IsReady()) return false;
  instants_expected = kInstantsExpected;
  char text[1024];
  if (!stat_.Read(thread_id_, "stat", text) || LastCpuIn(text) != sched_getcpu()) return false;
  // A kernel without these files cannot say which of several threads it was.
  if (!sched_.Read(thread_id_, "sched", text)) return true;
  const std::int64_t last_run_ns = LastRunNs(text);
  const std::int64_t scheduled_ns = instant.scheduled_ns();
  return last_run_ns < 0 || scheduled_ns < 0 || last_run_ns >= scheduled_ns - kSwitchNs;
}

int LinuxThreadProbe::LastCpu() {
  char text[1024];
  return stat_.Read(thread_id_, "stat", text) ? LastCpuIn(text) : -1;
}

// The scheduler weighs a thread by its niceness: a much nicer one keeps its CPU until its own slice
// ends.
bool LinuxThreadProbe::YieldsAtOnce() {
  constexpr int kMostNicer = 10;
  const auto id = static_cast<pid_t>(thread_id_);
  const int policy = sched_getscheduler(id) & ~SCHED_RESET_ON_FORK;
  return (policy == SCHED_OTHER || policy == SCHED_BATCH || policy == SCHED_IDLE) &&
         getpriority(PRIO_PROCESS, static_cast<id_t>(id)) >=
             getpriority(PRIO_PROCESS, 0) - kMostNicer;
}

std::int64_t LinuxThreadProbe::WaitCount() {
  char text[2048];
  if (sched_.Read(thread_id_, "sched", text)) {
    const std::int64_t count = NumberAfter(text, "nr_voluntary_switches");
    if (count >= 0) return count;
  }
  LinuxThreadFile status;
  return status.Read(thread_id_, "status", text) ? NumberAfter(text, "voluntary_ctxt_switches")
                                                 : -1;
}

bool LinuxThreadProbe::BlocksSignal(int signal) {
  constexpr int kMaskField = 32;
  constexpr int kMaskSignals = 31;  // that a stat file tells of
  if (signal > kMaskSignals) {
    const std::string task = std::string(task_directory) + "/" + std::to_string(thread_id_);
    return HasSignal(BlockedSignalsIn(task), signal);
  }
  char text[1024];
  if (!stat_.Read(thread_id_, "stat", text)) return false;
  const char* const state = StatField(text, 3);
  const char* const mask = StatField(text, kMaskField);
  if (state == nullptr || mask == nullptr) return false;
  if (HasSignal(std::strtoull(mask, nullptr, 10), signal)) return true;
  return *state == 'S' && syscall_.Read(thread_id_, "syscall", text) && IsSignalWait(text);
}

}  // namespace strobe::internal
