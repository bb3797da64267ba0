// Programs that end in every way that Windows has, while their threads are being sampled: each ends
// within a bounded time, by its own exit code, and what it has written is whole. The programs are
// this one, started anew as `--end HOW DIRECTORY`.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <windows.h>
// After it.
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "../../src/platform/windows/stopped_thread.h"
#include "counted_walks.h"
#include "platform/test_system.h"
#include "strobe/own_parts.h"
#include "support/until_seen.h"
#include "written_profiles.h"

namespace strobe::testing {

// Ends the program, which has waited in vain. No test expects that exit code.
[[noreturn]] inline void GiveUp() {
  constexpr int kOutOfPatience = 39;
  std::fprintf(stderr, "what the program waits for does not come\n");
  TerminateProcess(GetCurrentProcess(), kOutOfPatience);
  std::abort();
}

// Not in the anonymous namespace: a profile shows its name. The condition may ask the system, so it
// is not asked often.
template <class Condition>
__attribute__((noinline)) void WorkUntil(const Condition& is_over) {
  const std::int64_t end_ns = ThreadCpuNs() + kPatienceNs;
  std::uint64_t value = 1;
  while (!is_over) {
    if (ThreadCpuNs() > end_ns) GiveUp();
    for (int i = 0; i < 100'000; ++i) {
      value = value * 6364136223846793005U + 1442695040888963407U;
      __asm__ volatile("" : "+r"(value));
    }
  }
}

// The same, but leaves the CPU to what is awaited.
template <class Condition>
void SleepUntil(const Condition& is_over) {
  for (int looks = 0; !is_over(); ++looks) {
    if (looks == kPatienceLooks) GiveUp();
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

namespace {

using ::testing::AnyOf;
using ::testing::Optional;

constexpr int kExitCode = 37;
constexpr int kNoSuchEvent = 38;
constexpr DWORD kKilledByConsole = 0xC000013A;  // STATUS_CONTROL_C_EXIT; by Wine it is 0
// Longer than a program's own patience, which ends it.
constexpr DWORD kPatienceMs = 180'000;
constexpr int kWalks = 5;  // of a thread that is to be seen in the profile

// ---- The programs.

struct CountedTraits : DefaultTraits {
  using Platform = CountingPlatform;
};

// All that a program here has. Never destroyed, as in a program that ends wherever it stands.
struct Program {
  explicit Program(const char* directory)
      : profiler({.sampling = {.cpu_frequency_hz = 1000, .wall_frequency_hz = 1000},
                  .exporter = {.directory = directory}}) {}

  // Starts a thread that works until the end, and waits until it has been sampled at it.
  std::thread StartWorker() {
    std::atomic<bool> is_sampled{false};
    std::thread worker([&] {
      const Registration registration = profiler.RegisterThread("worker");
      WorkUntil(EnoughWalks(kWalks));
      is_sampled = true;
      WorkUntil(is_ending);
    });
    SleepUntil([&] { return is_sampled.load(); });
    return worker;
  }

  BasicProfiler<CountedTraits> profiler;
  std::atomic<bool> is_ending{false};
};
Program* program = nullptr;

int Return() {
  std::thread worker;
  {
    const BasicScopedProfiler session(program->profiler);
    worker = program->StartWorker();
    program->is_ending = true;
    worker.join();
  }
  return kExitCode;
}

// The session ends with the program's static objects, on the thread that calls exit.
int ExitFromWorker() {
  static const BasicScopedProfiler session(program->profiler);
  program->StartWorker().detach();
  std::thread([] {
    {
      const Registration registration = program->profiler.RegisterThread("exits");
      WorkUntil(EnoughWalks(kWalks));
    }
    std::exit(kExitCode);
  }).join();
  return 1;
}

// The session is not ended: ExitProcess ends all threads where they stand, and then this one, while
// it is being sampled.
int EndProcess() {
  const BasicScopedProfiler session(program->profiler);
  program->StartWorker().detach();
  const Registration registration = program->profiler.RegisterThread("main");
  WorkUntil(EnoughWalks(kWalks));
  ExitProcess(kExitCode);
}

// The same, under a thread that stops it without a pause, and others that are killed while they
// look for it. Their loops end with the process, and so when this thread loses its patience.
int EndProcessWhileStopped() {
  const Registration registration = program->profiler.RegisterThread("main");
  constexpr int kStops = 20;
  std::atomic<bool> is_stopped_often{false};
  const std::uint64_t id = GetCurrentThreadId();
  std::thread([&, thread = internal::KnownThread::Find(id)] {
    static internal::StackCopy copy;
    int stops = 0;
    while (true) {
      if (internal::CopyStack(*thread, copy) && ++stops == kStops) is_stopped_often = true;
    }
  }).detach();
  for (int i = 0; i < 3; ++i) {
    std::thread([id] {
      while (internal::KnownThread::Find(id) != nullptr) {
      }
    }).detach();
  }
  WorkUntil(is_stopped_often);
  ExitProcess(kExitCode);
}

// An event of the console, which the system's own thread brings, to this process alone: it has a
// console of its own.
int AwaitConsoleEvent(DWORD event, PHANDLER_ROUTINE handler) {
  FreeConsole();
  if (AllocConsole() == 0) return kNoSuchEvent;
  // The starter of this program may have made it leave Ctrl-C alone.
  SetConsoleCtrlHandler(nullptr, FALSE);
  if (handler != nullptr && SetConsoleCtrlHandler(handler, TRUE) == 0) return 1;
  const BasicScopedProfiler session(program->profiler);
  std::thread worker = program->StartWorker();
  const bool is_sent = GenerateConsoleCtrlEvent(event, 0) != 0;
  if (!is_sent) program->is_ending = true;
  worker.join();
  return is_sent ? kExitCode : kNoSuchEvent;
}
// Says to the program that it shall end.
BOOL WINAPI EndWork(DWORD /*event*/) {
  program->is_ending = true;
  return TRUE;
}
// Saves the profile, and leaves the rest to the system.
BOOL WINAPI StopSession(DWORD /*event*/) {
  static_cast<void>(program->profiler.Stop());
  return FALSE;
}

// Whether the thread has been terminated, and is no more. By its id: a std::thread's native handle
// is none of the system's everywhere.
bool Terminate(DWORD thread_id) {
  const HANDLE thread = OpenThread(THREAD_TERMINATE | SYNCHRONIZE, FALSE, thread_id);
  if (thread == nullptr) return false;
  const bool is_gone =
      TerminateThread(thread, 0) != 0 && WaitForSingleObject(thread, kPatienceMs) == WAIT_OBJECT_0;
  CloseHandle(thread);
  return is_gone;
}

// Threads that the C++ library does not see end, so that their registrations never do.
int LoseThreads() {
  BasicScopedProfiler session(program->profiler);
  for (int i = 0; i < 10; ++i) {
    const auto run = [] {
      static_cast<void>(new Registration(program->profiler.RegisterThread("lost")));
      WorkUntil(EnoughWalks(kWalks));
    };
    std::thread([&] {
      run();
      ExitThread(0);
    }).join();
    std::atomic<DWORD> id{0};
    std::thread killed([&] {
      run();
      id = GetCurrentThreadId();
      // Without a lock: a terminated thread never gives it back.
      WorkUntil(program->is_ending);
    });
    SleepUntil([&] { return id != 0; });
    const bool is_gone = Terminate(id);
    killed.detach();
    if (!is_gone) return 1;
  }
  std::thread worker = program->StartWorker();
  program->is_ending = true;
  worker.join();
  return kExitCode;
}

// Threads that were there before the profiler, and register themselves when it runs.
int RegisterOldThreads(const char* directory) {
  std::atomic<bool> is_there{false};
  std::thread worker([&] {
    SleepUntil([&] { return is_there.load(); });
    const Registration registration = program->profiler.RegisterThread("old");
    WorkUntil(EnoughWalks(kWalks));
  });
  program = new Program(directory);
  const BasicScopedProfiler session(program->profiler);
  is_there = true;
  worker.join();
  return kExitCode;
}

int RunProgram(std::string_view how, const char* directory) {
  if (how == "old_threads") return RegisterOldThreads(directory);
  program = new Program(directory);
  if (how == "return") return Return();
  if (how == "exit") return ExitFromWorker();
  if (how == "end_process") return EndProcess();
  if (how == "end_process_stopped") return EndProcessWhileStopped();
  if (how == "lost_threads") return LoseThreads();
  const DWORD event = how.starts_with("ctrl_c") ? CTRL_C_EVENT : CTRL_BREAK_EVENT;
  if (how.ends_with("_ends_work")) return AwaitConsoleEvent(event, &EndWork);
  if (how.ends_with("_stops_session")) return AwaitConsoleEvent(event, &StopSession);
  return AwaitConsoleEvent(event, nullptr);
}

// ---- The tests.

class WindowsEnds : public ::testing::Test {
 protected:
  // The exit code, or nothing if it does not end.
  std::optional<DWORD> Run(const std::string& how) {
    std::wstring command = L"\"" + ProgramPath().wstring() + L"\" --end " +
                           std::wstring(how.begin(), how.end()) + L" \"" +
                           directory_.path().wstring() + L"\"";
    STARTUPINFOW startup = {};
    startup.cb = sizeof(startup);
    PROCESS_INFORMATION process = {};
    // Wine 8 was seen to refuse one of some hundreds. Nothing of the program has run then.
    const bool is_started = WaitUntil([&] {
      if (CreateProcessW(nullptr, command.data(), nullptr, nullptr, FALSE, 0, nullptr, nullptr,
                         &startup, &process) != 0)
        return true;
      std::fprintf(stderr, "cannot start %s: error %lu\n", how.c_str(), GetLastError());
      return false;
    });
    if (!is_started) return std::nullopt;
    std::optional<DWORD> code = 0;
    if (WaitForSingleObject(process.hProcess, kPatienceMs) != WAIT_OBJECT_0) {
      ADD_FAILURE() << how << " does not end";
      TerminateProcess(process.hProcess, 1);
      code.reset();
    } else {
      GetExitCodeProcess(process.hProcess, &*code);
    }
    CloseHandle(process.hThread);
    CloseHandle(process.hProcess);
    return code;
  }

  std::vector<PprofProfile> Profiles() const { return WrittenProfiles(directory_.path()); }
  void ExpectsAProfileOfTheWork() const {
    EXPECT_TRUE(ShowFunction(Profiles(), "WorkUntil")) << "no profile shows the work";
  }

  TemporaryDirectory directory_;
};

TEST_F(WindowsEnds, MainReturns) {
  EXPECT_EQ(Run("return"), kExitCode);
  ExpectsAProfileOfTheWork();
}

TEST_F(WindowsEnds, AWorkerCallsExit) {
  EXPECT_EQ(Run("exit"), kExitCode);
  ExpectsAProfileOfTheWork();
}

TEST_F(WindowsEnds, TheProcessEndsAtOnce) {
  for (int i = 0; i < 5; ++i) {
    ASSERT_EQ(Run("end_process"), kExitCode) << i;
    ASSERT_EQ(Run("end_process_stopped"), kExitCode) << i;
  }
  Profiles();
}

TEST_F(WindowsEnds, ThreadsEndWithoutTheLibrary) {
  EXPECT_EQ(Run("lost_threads"), kExitCode);
  ExpectsAProfileOfTheWork();
}

TEST_F(WindowsEnds, ThreadsThatWereThereBefore) {
  EXPECT_EQ(Run("old_threads"), kExitCode);
  ExpectsAProfileOfTheWork();
}

// Each is tried with both events; Wine 8 has no CTRL_BREAK_EVENT.
class WindowsConsoleEnds : public WindowsEnds, public ::testing::WithParamInterface<const char*> {
 protected:
  std::optional<DWORD> RunWith(const std::string& what) {
    const std::optional<DWORD> code = Run(GetParam() + what);
    is_skipped_ = code == kNoSuchEvent;
    return code;
  }
  bool is_skipped_ = false;
};

TEST_P(WindowsConsoleEnds, WithoutAHandler) {
  const std::optional<DWORD> code = RunWith("");
  if (is_skipped_) GTEST_SKIP() << "this system sends no such event";
  EXPECT_THAT(code, AnyOf(Optional(kKilledByConsole), Optional(0u)));
  Profiles();
}

TEST_P(WindowsConsoleEnds, ItsHandlerEndsTheWork) {
  const std::optional<DWORD> code = RunWith("_ends_work");
  if (is_skipped_) GTEST_SKIP() << "this system sends no such event";
  EXPECT_EQ(code, kExitCode);
  ExpectsAProfileOfTheWork();
}

TEST_P(WindowsConsoleEnds, ItsHandlerStopsTheSession) {
  const std::optional<DWORD> code = RunWith("_stops_session");
  if (is_skipped_) GTEST_SKIP() << "this system sends no such event";
  EXPECT_THAT(code, AnyOf(Optional(kKilledByConsole), Optional(0u)));
  ExpectsAProfileOfTheWork();
}

INSTANTIATE_TEST_SUITE_P(Event, WindowsConsoleEnds, ::testing::Values("ctrl_c", "ctrl_break"),
                         [](const auto& information) { return std::string(information.param); });

}  // namespace
}  // namespace strobe::testing

int main(int argc, char** argv) {
  if (argc == 4 && std::string_view(argv[1]) == "--end")
    return strobe::testing::RunProgram(argv[2], argv[3]);
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
