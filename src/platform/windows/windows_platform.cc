#include "strobe/platform/windows/windows_platform.h"

#include <windows.h>
// These need windows.h before them.
#include <errno.h>
#include <intrin.h>
#include <process.h>
#include <psapi.h>
#include <tlhelp32.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <mutex>
#include <utility>

#include "../own_threads.h"
#include "exit_lock.h"
#include "images.h"
#include "library_function.h"
#include "stopped_thread.h"
#include "strobe/core/settings/messages.h"
#include "strobe/platform/capture_target.h"
#include "utf8.h"
#include "wait_calls.h"

namespace strobe {
namespace {

// Nanoseconds in a cycle of QueryThreadCycleTime, which counts like the time stamp counter; 0 if
// the system does not have that call.
double MeasureNsPerCycle() {
  constexpr DWORD kMeasureMs = 20;
  ULONG64 cycles = 0;
  LARGE_INTEGER frequency{};
  if (QueryThreadCycleTime(GetCurrentThread(), &cycles) == 0 || cycles == 0 ||
      QueryPerformanceFrequency(&frequency) == 0)
    return 0;
  LARGE_INTEGER begin{};
  LARGE_INTEGER end{};
  QueryPerformanceCounter(&begin);
  const std::uint64_t first = __rdtsc();
  Sleep(kMeasureMs);
  QueryPerformanceCounter(&end);
  const std::uint64_t last = __rdtsc();
  if (last <= first) return 0;
  const double ns = 1e9 * static_cast<double>(end.QuadPart - begin.QuadPart) /
                    static_cast<double>(frequency.QuadPart);
  return ns / static_cast<double>(last - first);
}

double NsPerCycle() {
  static const double ns = MeasureNsPerCycle();
  return ns;
}

// The CPU time of a thread or of the process, which have functions of the same form. -1 if the
// system does not tell.
std::int64_t CpuTimeOf(HANDLE handle, decltype(&QueryThreadCycleTime) query_cycles,
                       decltype(&GetThreadTimes) get_times) {
  ULONG64 cycles = 0;
  const double ns_per_cycle = NsPerCycle();
  if (ns_per_cycle > 0 && query_cycles(handle, &cycles) != 0) {
    return static_cast<std::int64_t>(static_cast<double>(cycles) * ns_per_cycle);
  }
  FILETIME created{};
  FILETIME ended{};
  FILETIME kernel{};
  FILETIME user{};
  if (get_times(handle, &created, &ended, &kernel, &user) == 0) return -1;
  constexpr std::int64_t kNsPerUnit = 100;
  const auto ns = [](const FILETIME& time) {
    return static_cast<std::int64_t>(std::uint64_t{time.dwHighDateTime} << 32 |
                                     time.dwLowDateTime) *
           kNsPerUnit;
  };
  return ns(kernel) + ns(user);
}
std::int64_t CpuTimeOfThread(HANDLE thread) {
  return CpuTimeOf(thread, &QueryThreadCycleTime, &GetThreadTimes);
}

std::int64_t CpuTimeOfThreadWithId(std::uint64_t thread_id) {
  const HANDLE thread =
      OpenThread(THREAD_QUERY_LIMITED_INFORMATION, FALSE, static_cast<DWORD>(thread_id));
  if (thread == nullptr) return -1;
  const std::int64_t cpu_ns = CpuTimeOfThread(thread);
  CloseHandle(thread);
  return cpu_ns;
}

// The memory of the current capture. Only collectors take the mutex, and they are never stopped.
struct CaptureRoom {
  std::mutex mutex;
  internal::StackCopy copy;
};
CaptureRoom& GlobalCaptureRoom() {
  static auto* const room = new CaptureRoom;
  return *room;
}

// A timer for one thread at a time; nullptr if the system refuses.
HANDLE CreateTimer() {
  constexpr DWORD kHighResolution =
      2;  // CREATE_WAITABLE_TIMER_HIGH_RESOLUTION, since Windows 10, version 1803
  constexpr DWORD kRights = SYNCHRONIZE | TIMER_MODIFY_STATE;
  const HANDLE timer = CreateWaitableTimerExW(nullptr, nullptr, kHighResolution, kRights);
  return timer != nullptr ? timer : CreateWaitableTimerExW(nullptr, nullptr, 0, kRights);
}

// Does nothing on an old Windows, which has no names for threads.
void NameThread(HANDLE thread, const std::string& name) {
  using SetDescription = HRESULT(WINAPI*)(HANDLE, PCWSTR);
  static const auto set = internal::FindFunction<SetDescription>(
      GetModuleHandleW(L"kernelbase.dll"), "SetThreadDescription");
  if (set != nullptr) set(thread, std::wstring(name.begin(), name.end()).c_str());
}

// Empty on an old Windows.
std::string NameOfThread(HANDLE thread) {
  using GetDescription = HRESULT(WINAPI*)(HANDLE, PWSTR*);
  static const auto get = internal::FindFunction<GetDescription>(
      GetModuleHandleW(L"kernelbase.dll"), "GetThreadDescription");
  wchar_t* text = nullptr;
  if (get == nullptr || get(thread, &text) < 0 || text == nullptr) return {};
  std::string name = internal::Utf8FromWide(text);
  LocalFree(text);
  return name;
}

}  // namespace

absl::Status WindowsPlatform::Available() { return absl::OkStatus(); }

ThreadInfo WindowsPlatform::CurrentThread() {
  internal::KnownThread::Current();
  ULONG_PTR low = 0;
  ULONG_PTR high = 0;
  GetCurrentThreadStackLimits(&low, &high);
  return {.id = CurrentThreadId(), .stack = {low, high}};
}

std::uint64_t WindowsPlatform::CurrentThreadId() { return GetCurrentThreadId(); }
std::uint64_t WindowsPlatform::ProcessId() { return GetCurrentProcessId(); }

std::string WindowsPlatform::ProgramName() {
  const std::string path = internal::PathOfImage(nullptr);
  std::string name = path.substr(path.find_last_of("\\/") + 1);
  constexpr std::size_t kSuffixLength = 4;  // .exe
  if (name.size() > kSuffixLength && name[name.size() - kSuffixLength] == '.')
    name.resize(name.size() - kSuffixLength);
  return name;
}

// Not by the C library, which has only the characters of the code page.
std::optional<std::string> WindowsPlatform::EnvironmentVariable(const char* name) {
  if (internal::IsIgnoredVariable(name)) return std::nullopt;
  const std::wstring wide_name = internal::WideFromUtf8(name);
  std::wstring value(MAX_PATH, L'\0');
  while (true) {
    SetLastError(ERROR_SUCCESS);
    const DWORD length =
        GetEnvironmentVariableW(wide_name.c_str(), value.data(), static_cast<DWORD>(value.size()));
    if (length == 0 && GetLastError() != ERROR_SUCCESS) return std::nullopt;
    if (length < value.size())
      return internal::Utf8FromWide(std::wstring_view(value).substr(0, length));
    value.resize(length);  // with the terminating zero
  }
}

std::vector<std::string> WindowsPlatform::EnvironmentNames(std::string_view prefix) {
  std::vector<std::string> names;
  if (internal::IsIgnoredVariable(prefix)) return names;
  wchar_t* const all = GetEnvironmentStringsW();
  if (all == nullptr) return names;
  for (const wchar_t* entry = all; *entry != L'\0';) {
    const std::wstring_view text(entry);
    std::string name = internal::Utf8FromWide(text.substr(0, text.find(L'=')));
    if (name.starts_with(prefix)) names.push_back(std::move(name));
    entry += text.size() + 1;
  }
  FreeEnvironmentStringsW(all);
  return names;
}

// The system lists the threads of all processes together.
std::vector<ProgramThread> WindowsPlatform::ProgramThreads() {
  std::vector<ProgramThread> threads;
  const HANDLE all = CreateToolhelp32Snapshot(TH32CS_SNAPTHREAD, 0);
  if (all == INVALID_HANDLE_VALUE) return threads;
  THREADENTRY32 entry{};
  entry.dwSize = sizeof(entry);
  for (BOOL is_one = Thread32First(all, &entry); is_one != 0; is_one = Thread32Next(all, &entry)) {
    const std::uint64_t id = entry.th32ThreadID;
    if (entry.th32OwnerProcessID != GetCurrentProcessId() || internal::IsOwnThread(id, ForkCount()))
      continue;
    const std::int64_t cpu_ns = CpuTimeOfThreadWithId(id);
    if (cpu_ns >= 0) threads.push_back({.id = id, .cpu_ns = cpu_ns});
  }
  CloseHandle(all);
  return threads;
}

std::string WindowsPlatform::ThreadName(std::uint64_t thread_id) {
  const HANDLE thread =
      OpenThread(THREAD_QUERY_LIMITED_INFORMATION, FALSE, static_cast<DWORD>(thread_id));
  if (thread == nullptr) return {};
  std::string name = NameOfThread(thread);
  CloseHandle(thread);
  return name;
}

std::int64_t WindowsPlatform::OwnCpuTimeNs() {
  return internal::OwnThreadsCpuTimeNs(ForkCount(), &CpuTimeOfThreadWithId);
}

std::int64_t WindowsPlatform::ThreadCpuTimeNs(std::uint64_t thread_id) {
  if (thread_id == CurrentThreadId()) return CpuTimeOfThread(GetCurrentThread());
  const std::shared_ptr<internal::KnownThread> thread = internal::KnownThread::Find(thread_id);
  return thread == nullptr ? -1 : CpuTimeOfThread(thread->handle());
}

ThreadPoll WindowsPlatform::ThreadProbe::Poll() {
  // The clock tells only by its ticks who has run, and those may be in step with the program. So it
  // decides who is worth a stop, and the stop decides who runs.
  constexpr std::uint64_t kRecentMs = 100;
  const std::int64_t cpu_ns = ThreadCpuTimeNs(thread_id_);
  const std::uint64_t now_ms = GetTickCount64();
  if (std::exchange(seen_cpu_ns_, cpu_ns) < cpu_ns) ran_at_ms_ = now_ms;
  return now_ms - ran_at_ms_ <= kRecentMs ? ThreadPoll::kRuns : ThreadPoll::kHasNotRun;
}

std::int64_t WindowsPlatform::ProcessCpuTimeNs() {
  return CpuTimeOf(GetCurrentProcess(), &QueryProcessCycleTime, &GetProcessTimes);
}

std::int64_t WindowsPlatform::ProcessMemoryBytes() {
  PROCESS_MEMORY_COUNTERS counters{};
  if (K32GetProcessMemoryInfo(GetCurrentProcess(), &counters, sizeof(counters)) == 0) return -1;
  return static_cast<std::int64_t>(counters.WorkingSetSize);
}

// Makes all that the collector would otherwise make at its first use, when other threads may wait
// for its locks.
absl::Status WindowsPlatform::InstallHandler(int /*signal*/) {
  NsPerCycle();
  GlobalCaptureRoom();
  internal::ImageVersion();
  internal::IsInWaitCall(0);
  if (!internal::ExitLock::Prepare())
    return absl::UnimplementedError("this Windows has no lock that keeps a process from ending");
  return internal::StartWatchdog()
             ? absl::OkStatus()
             : absl::ResourceExhaustedError("no thread can be started to watch over stopped ones");
}

bool WindowsPlatform::Interrupt(std::uint64_t thread_id, std::uint64_t payload, int /*signal*/,
                                bool was_running) {
  internal::ChannelToken token;
  if (thread_id == CurrentThreadId() || !internal::ChannelToken::Unpack(payload, token) ||
      token.arena >= internal::kMaxArenas)
    return false;
  const internal::CaptureEntry& entry = internal::CaptureEntryOf(token.arena);
  const internal::CaptureEntry::Function function = entry.function.load(std::memory_order_acquire);
  const std::shared_ptr<internal::KnownThread> thread = internal::KnownThread::Find(thread_id);
  if (function == nullptr || thread == nullptr) return false;
  CaptureRoom& room = GlobalCaptureRoom();
  const std::lock_guard lock(room.mutex);
  if (!internal::CopyStack(*thread, room.copy)) return false;
  if (was_running && internal::IsInWaitCall(room.copy.registers.pc)) return false;
  const CopiedStackMemory stack(room.copy.base, room.copy.stack());
  return function(
      entry.context,
      {.token = token, .timer_expiries = 0, .registers = &room.copy.registers, .stack = &stack});
}

std::uint64_t WindowsPlatform::ModuleVersion() { return internal::ImageVersion(); }
std::vector<Module> WindowsPlatform::Modules() { return internal::LoadedModules(); }

std::size_t WindowsPlatform::ReadMemory(std::uint64_t address, std::span<std::uint8_t> bytes) {
  return internal::ReadOwnMemory(address, bytes);
}
std::size_t WindowsPlatform::ReadStack(std::uint64_t address,
                                       std::span<std::uint8_t> bytes) noexcept {
  return internal::ReadOwnMemory(address, bytes);
}

WindowsPlatform::OwnThread::OwnThread(OwnThread&& other) noexcept
    : handle_(std::exchange(other.handle_, nullptr)), error_(other.error_) {}
WindowsPlatform::OwnThread& WindowsPlatform::OwnThread::operator=(OwnThread&& other) noexcept {
  handle_ = std::exchange(other.handle_, nullptr);
  error_ = other.error_;
  return *this;
}
void WindowsPlatform::OwnThread::Join() {
  if (handle_ == nullptr) return;
  WaitForSingleObject(handle_, INFINITE);
  Detach();
}
void WindowsPlatform::OwnThread::Detach() {
  if (handle_ != nullptr) CloseHandle(std::exchange(handle_, nullptr));
}

WindowsPlatform::OwnThread WindowsPlatform::RunOnOwnThread(const char* name,
                                                           std::function<void()> body) {
  struct Start {
    std::string name;
    std::function<void()> body;
  };
  auto start = std::make_unique<Start>(Start{name, std::move(body)});
  const auto run = [](void* argument) -> unsigned {
    const std::unique_ptr<Start> own(static_cast<Start*>(argument));
    NameThread(GetCurrentThread(), own->name);
    const internal::OwnThreadMark mark(GetCurrentThreadId(), ForkCount(), &CpuTimeOfThreadWithId);
    own->body();
    return 0;
  };
  OwnThread thread;
  // By the C library, which must know all threads that use it.
  thread.handle_ =
      reinterpret_cast<void*>(_beginthreadex(nullptr, 0, run, start.get(), 0, nullptr));
  if (thread.handle_ == nullptr) {
    thread.error_ = errno;
  } else {
    static_cast<void>(start.release());
  }
  return thread;
}

void WindowsPlatform::SleepNs(std::int64_t time_ns) {
  constexpr std::int64_t kNsPerUnit = 100;
  constexpr std::int64_t kNsPerMs = 1'000'000;
  // The timer of the last sleep, if no later one has taken it.
  static constinit std::atomic<HANDLE> spare{nullptr};
  HANDLE timer = spare.exchange(nullptr, std::memory_order_acquire);
  if (timer == nullptr) timer = CreateTimer();
  LARGE_INTEGER due{};
  due.QuadPart = -(time_ns / kNsPerUnit + 1);  // from now on
  const auto time_ms = static_cast<DWORD>(time_ns / kNsPerMs + 1);
  constexpr DWORD kGraceMs = 100;  // for a timer that does not come
  if (timer == nullptr || SetWaitableTimer(timer, &due, 0, nullptr, nullptr, FALSE) == 0) {
    Sleep(time_ms);
  } else {
    WaitForSingleObject(timer, time_ms + kGraceMs);
  }
  timer = spare.exchange(timer, std::memory_order_acq_rel);
  if (timer != nullptr) CloseHandle(timer);
}

void WindowsPlatform::WriteLine(const std::string& text) {
  using Kind = internal::MessageTarget::Kind;
  if (const MessageSink sink = internal::CurrentMessageSink()) return sink(text);
  const internal::MessageTarget& target = internal::CurrentMessageTarget(&EnvironmentVariable);
  if (target.kind == Kind::kNone) return;
  const std::string line = text + "\n";
  DWORD written = 0;
  // There is no log of the system that a program can write to without being registered there.
  if (target.kind != Kind::kFile) {
    WriteFile(GetStdHandle(STD_ERROR_HANDLE), line.data(), static_cast<DWORD>(line.size()),
              &written, nullptr);
    return;
  }
  const HANDLE file =
      CreateFileW(internal::WideFromUtf8(target.path).c_str(), FILE_APPEND_DATA,
                  FILE_SHARE_READ | FILE_SHARE_WRITE, nullptr, OPEN_ALWAYS, 0, nullptr);
  if (file == INVALID_HANDLE_VALUE) return;
  WriteFile(file, line.data(), static_cast<DWORD>(line.size()), &written, nullptr);
  CloseHandle(file);
}

WindowsPlatform::Mapping WindowsPlatform::MapMemory(std::uint64_t bytes) {
  void* memory = VirtualAlloc(nullptr, bytes, MEM_RESERVE | MEM_COMMIT, PAGE_READWRITE);
  if (memory == nullptr) return {};
  return {.bytes = {static_cast<std::byte*>(memory), bytes}};
}
void WindowsPlatform::UnmapMemory(Mapping mapping) {
  VirtualFree(mapping.bytes.data(), 0, MEM_RELEASE);
}
void WindowsPlatform::DiscardMemory(void* memory, std::uint64_t bytes) {
  VirtualAlloc(memory, bytes, MEM_RESET, PAGE_READWRITE);
}

}  // namespace strobe
