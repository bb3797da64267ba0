#include "strobe/platform/windows/windows_platform.h"

#include <windows.h>
// After it.
#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "../../src/platform/windows/stopped_thread.h"
#include "gtest/gtest.h"
#include "strobe/platform/capture_target.h"

namespace strobe {
namespace {

using internal::CaptureTarget;
using internal::ChannelToken;

constexpr std::uint8_t kArena = internal::kMaxArenas - 1;
const std::uint64_t kPayload = ChannelToken{.arena = kArena, .index = 3}.Pack();
constexpr Address kMagic = 0x5B0BE5B0BE5B0BE5;

// A thread that runs until the test ends it, with a word on its stack that no other stack has.
class Worker {
 public:
  Worker() : thread_([this] { Run(); }) {
    while (id_.load() == 0) std::this_thread::yield();
  }
  ~Worker() { End(); }
  void End() {
    is_ending_ = true;
    if (thread_.joinable()) thread_.join();
  }
  [[nodiscard]] std::uint64_t id() const { return id_; }
  [[nodiscard]] StackBounds stack() const { return stack_; }
  [[nodiscard]] std::uint64_t turns() const { return turns_; }

 private:
  void Run() {
    const volatile Address word = kMagic;
    const ThreadInfo info = WindowsPlatform::CurrentThread();
    stack_ = info.stack;
    id_ = info.id;
    while (!is_ending_ && word == kMagic) turns_ = turns_ + 1;
  }
  std::atomic<bool> is_ending_{false};
  std::atomic<std::uint64_t> id_{0};
  std::atomic<std::uint64_t> turns_{0};
  StackBounds stack_;
  std::thread thread_;
};

struct Arrival {
  int calls = 0;
  ChannelToken token;
  Address sp = 0;
  bool has_magic = false;
  Address end = 0;
};
Arrival arrival;

bool NoteArrival(void* /*context*/, const CaptureTarget& target) {
  ++arrival.calls;
  arrival.token = target.token;
  arrival.sp = target.registers->sp;
  arrival.end = target.stack->end();
  Address word = 0;
  for (Address at = arrival.sp; target.stack->ReadWord(at, word); at += sizeof(word))
    arrival.has_magic |= word == kMagic;
  return true;
}

class WindowsPlatformTest : public ::testing::Test {
 protected:
  void SetUp() override {
    arrival = {};
    ASSERT_TRUE(WindowsPlatform::InstallHandler(0).ok());
    internal::CaptureEntryOf(kArena).function = &NoteArrival;
  }
  void TearDown() override { internal::CaptureEntryOf(kArena).function = nullptr; }
};

// Asks once a millisecond: a thread that is stopped again as soon as it runs never gets anywhere.
bool Eventually(const std::function<bool()>& predicate) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (!predicate()) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return true;
}

TEST_F(WindowsPlatformTest, AThreadKnowsItsStack) {
  const ThreadInfo info = WindowsPlatform::CurrentThread();
  EXPECT_EQ(info.id, GetCurrentThreadId());
  EXPECT_TRUE(info.stack.Holds(reinterpret_cast<Address>(&info)));
}

TEST_F(WindowsPlatformTest, AnInterruptedThreadsStackIsCopiedAndItRunsOn) {
  const Worker worker;
  ASSERT_TRUE(
      Eventually([&] { return WindowsPlatform::Interrupt(worker.id(), kPayload, 0, false); }));
  EXPECT_EQ(arrival.calls, 1);
  EXPECT_EQ(arrival.token.index, 3u);
  EXPECT_TRUE(worker.stack().Holds(arrival.sp));
  EXPECT_EQ(arrival.end, worker.stack().high);
  EXPECT_TRUE(arrival.has_magic);
  const std::uint64_t turns = worker.turns();
  EXPECT_TRUE(Eventually([&] { return worker.turns() > turns; }));
}

TEST_F(WindowsPlatformTest, NobodyIsInterruptedWhoIsNotThere) {
  Worker worker;
  worker.End();
  EXPECT_FALSE(WindowsPlatform::Interrupt(worker.id(), kPayload, 0, false)) << "ended";
  EXPECT_FALSE(WindowsPlatform::Interrupt(0xFFFFFFF0, kPayload, 0, false)) << "never there";
  WindowsPlatform::CurrentThread();
  EXPECT_FALSE(WindowsPlatform::Interrupt(GetCurrentThreadId(), kPayload, 0, false))
      << "no thread can stop itself";
  const Worker other;
  EXPECT_FALSE(WindowsPlatform::Interrupt(other.id(), 17, 0, false)) << "no payload of ours";
  EXPECT_EQ(arrival.calls, 0);
}

// A wait of another thread for the event, or for a packet at the port.
struct Wait {
  const char* name;
  std::function<void(HANDLE event, HANDLE port)> wait;
};

TEST_F(WindowsPlatformTest, AThreadThatWaitsIsNotTakenToRun) {
  {
    const Worker runs;
    EXPECT_TRUE(
        Eventually([&] { return WindowsPlatform::Interrupt(runs.id(), kPayload, 0, true); }));
    EXPECT_EQ(arrival.calls, 1);
  }
  const std::vector<Wait> waits = {
      {"one object", [](HANDLE event, HANDLE /*port*/) { WaitForSingleObject(event, INFINITE); }},
      {"several objects",
       [](HANDLE event, HANDLE /*port*/) {
         const HANDLE events[2] = {event, event};
         WaitForMultipleObjects(1, events, FALSE, INFINITE);
       }},
      {"sleep",
       [](HANDLE event, HANDLE /*port*/) {
         while (WaitForSingleObject(event, 0) != WAIT_OBJECT_0) Sleep(300);
       }},
      {"a completion port", [](HANDLE /*event*/, HANDLE port) {
         DWORD bytes = 0;
         ULONG_PTR key = 0;
         OVERLAPPED* overlapped = nullptr;
         GetQueuedCompletionStatus(port, &bytes, &key, &overlapped, INFINITE);
       }}};
  for (const Wait& wait : waits) {
    const HANDLE event = CreateEventW(nullptr, TRUE, FALSE, nullptr);
    // Of this wait alone: a packet that another wait left would end it at once.
    const HANDLE port = CreateIoCompletionPort(INVALID_HANDLE_VALUE, nullptr, 0, 1);
    std::atomic<std::uint64_t> id{0};
    std::thread thread([&] {
      id = WindowsPlatform::CurrentThread().id;
      wait.wait(event, port);
    });
    while (id == 0) std::this_thread::yield();
    // Until it waits it runs, and then it can be stopped but has nothing to show.
    EXPECT_TRUE(Eventually([&] {
      return !WindowsPlatform::Interrupt(id, kPayload, 0, true) &&
             WindowsPlatform::Interrupt(id, kPayload, 0, false);
    })) << wait.name;
    SetEvent(event);
    PostQueuedCompletionStatus(port, 0, 0, nullptr);
    thread.join();
    CloseHandle(event);
    CloseHandle(port);
  }
}

TEST_F(WindowsPlatformTest, ThreadsMayEndWhileTheyAreInterrupted) {
  for (int i = 0; i < 50; ++i) {
    std::atomic<std::uint64_t> id{0};
    std::thread thread([&] { id = WindowsPlatform::CurrentThread().id; });
    while (id == 0) std::this_thread::yield();
    while (WindowsPlatform::Interrupt(id, kPayload, 0, false)) {
    }
    thread.join();
  }
}

TEST_F(WindowsPlatformTest, CpuTimeIsThatOfTheThread) {
  const Worker worker;
  const std::int64_t before = WindowsPlatform::ThreadCpuTimeNs(worker.id());
  EXPECT_GE(before, 0);
  EXPECT_TRUE(Eventually([&] { return WindowsPlatform::ThreadCpuTimeNs(worker.id()) > before; }));
  EXPECT_GE(WindowsPlatform::ThreadCpuTimeNs(GetCurrentThreadId()), 0);
  EXPECT_EQ(WindowsPlatform::ThreadCpuTimeNs(0xFFFFFFF0), -1);
}

TEST_F(WindowsPlatformTest, CpuTimeOfTheProcessIsThatOfAllThreads) {
  const std::int64_t before = WindowsPlatform::ProcessCpuTimeNs();
  EXPECT_GE(before, 0);
  const Worker worker;
  EXPECT_TRUE(Eventually([&] { return WindowsPlatform::ProcessCpuTimeNs() > before; }));
  EXPECT_GE(WindowsPlatform::ThreadCpuTimeNs(worker.id()), 0);
}

TEST_F(WindowsPlatformTest, ImagesComeAndGo) {
  const std::uint64_t version = WindowsPlatform::ModuleVersion();
  EXPECT_EQ(WindowsPlatform::ModuleVersion(), version);
  const HMODULE library = LoadLibraryW(L"winmm.dll");
  ASSERT_NE(library, nullptr);
  EXPECT_GT(WindowsPlatform::ModuleVersion(), version);
  const auto find = [&] {
    const std::vector<Module> modules = WindowsPlatform::Modules();
    const auto found = std::find_if(modules.begin(), modules.end(), [&](const Module& m) {
      return m.load_bias == reinterpret_cast<Address>(library);
    });
    return found == modules.end() ? Module() : *found;
  };
  const Module loaded = find();
  EXPECT_NE(loaded.path.find("winmm.dll"), std::string::npos) << loaded.path;
  EXPECT_NE(loaded.pdata_address, 0u);
  EXPECT_FALSE(loaded.build_id.empty());
  const auto function = reinterpret_cast<Address>(GetProcAddress(library, "timeGetTime"));
  EXPECT_TRUE(function >= loaded.start && function < loaded.limit);
  const std::uint64_t while_loaded = WindowsPlatform::ModuleVersion();
  FreeLibrary(library);
  EXPECT_GT(WindowsPlatform::ModuleVersion(), while_loaded);
  EXPECT_EQ(find(), Module());
}

// More than is kept of what the loader announces between two looks.
TEST_F(WindowsPlatformTest, ManyImagesMayComeAndGoBetweenTwoLooks) {
  constexpr int kTurns = 400;
  const auto count = [](const HMODULE library) {
    const std::vector<Module> modules = WindowsPlatform::Modules();
    return std::count_if(modules.begin(), modules.end(), [&](const Module& m) {
      return m.load_bias == reinterpret_cast<Address>(library);
    });
  };
  WindowsPlatform::ModuleVersion();
  const ModuleMap before(WindowsPlatform::Modules());
  HMODULE library = nullptr;
  for (int i = 0; i < kTurns; ++i) {
    library = LoadLibraryW(L"winmm.dll");
    ASSERT_NE(library, nullptr);
    FreeLibrary(library);
  }
  EXPECT_TRUE(ModuleMap(WindowsPlatform::Modules()) == before);
  library = LoadLibraryW(L"winmm.dll");
  EXPECT_GE(count(library), 1);
  FreeLibrary(library);
  EXPECT_EQ(count(library), 0);
}

// One file's bytes under another name: nothing in the image itself says that it is another one.
TEST_F(WindowsPlatformTest, ACopyInThePlaceOfAnImageHasItsOwnPath) {
  std::array<wchar_t, MAX_PATH> system{};
  std::array<wchar_t, MAX_PATH> temporary{};
  ASSERT_NE(GetSystemDirectoryW(system.data(), MAX_PATH), 0u);
  ASSERT_NE(GetTempPathW(MAX_PATH, temporary.data()), 0u);
  const std::wstring stem =
      std::wstring(temporary.data()) + L"strobe-" + std::to_wstring(GetCurrentProcessId());
  for (const wchar_t* const suffix : {L"-a.dll", L"-b.dll", L"-a.dll"}) {
    const std::wstring path = stem + suffix;
    ASSERT_NE(
        CopyFileW((std::wstring(system.data()) + L"\\version.dll").c_str(), path.c_str(), FALSE), 0)
        << GetLastError();
    const HMODULE library = LoadLibraryW(path.c_str());
    ASSERT_NE(library, nullptr) << GetLastError();
    const std::vector<Module> modules = WindowsPlatform::Modules();
    const auto found = std::find_if(modules.begin(), modules.end(), [&](const Module& m) {
      return m.load_bias == reinterpret_cast<Address>(library);
    });
    ASSERT_NE(found, modules.end());
    EXPECT_TRUE(found->path.ends_with(std::string(suffix, suffix + std::wcslen(suffix))))
        << found->path;
    FreeLibrary(library);
    DeleteFileW(path.c_str());
  }
}

__declspec(noinline) int OwnFunction(int value) { return value + 1; }

TEST_F(WindowsPlatformTest, TheProgramIsTheFirstImage) {
  const Module program = WindowsPlatform::Modules().at(0);
  const auto function = reinterpret_cast<Address>(&OwnFunction);
  EXPECT_TRUE(function >= program.start && function < program.limit);
  EXPECT_NE(program.path.find(WindowsPlatform::ProgramName()), std::string::npos);
  EXPECT_EQ(WindowsPlatform::ProgramName(), "unit_platform_test");
}

TEST_F(WindowsPlatformTest, MemoryIsReadWhereThereIsSome) {
  constexpr std::size_t kBytes = 0x10000;
  const WindowsPlatform::Mapping mapping = WindowsPlatform::MapMemory(kBytes);
  auto* const memory = reinterpret_cast<std::uint8_t*>(mapping.bytes.data());
  ASSERT_NE(memory, nullptr);
  EXPECT_EQ(memory[17], 0);
  memory[kBytes - 1] = 7;
  std::array<std::uint8_t, 200> bytes{};
  EXPECT_EQ(
      WindowsPlatform::ReadMemory(reinterpret_cast<Address>(memory) + kBytes - bytes.size(), bytes),
      bytes.size());
  EXPECT_EQ(bytes.back(), 7);
  // No system maps the lowest pages.
  EXPECT_EQ(WindowsPlatform::ReadMemory(8, bytes), 0u);
  EXPECT_EQ(WindowsPlatform::ReadStack(8, bytes), 0u);
  WindowsPlatform::UnmapMemory(mapping);
}

TEST_F(WindowsPlatformTest, OwnThreadsRunAndAreJoined) {
  std::atomic<int> runs{0};
  WindowsPlatform::OwnThread thread = WindowsPlatform::RunOnOwnThread("own", [&] { ++runs; });
  ASSERT_TRUE(thread.IsRunning());
  WindowsPlatform::OwnThread moved = std::move(thread);
  EXPECT_FALSE(thread.IsRunning());  // NOLINT(bugprone-use-after-move): that is what is tested
  moved.Join();
  EXPECT_FALSE(moved.IsRunning());
  EXPECT_EQ(runs, 1);
}

// Whatever the code page is: the environment holds UTF-16, and not always valid.
TEST_F(WindowsPlatformTest, TheEnvironmentIsUtf8) {
  SetEnvironmentVariableW(L"STROBE_TEST_PATH", L"C:\\\x0436\\\xD83D\xDE00");
  EXPECT_EQ(WindowsPlatform::EnvironmentVariable("STROBE_TEST_PATH"),
            "C:\\\xD0\xB6\\\xF0\x9F\x98\x80");
  SetEnvironmentVariableW(L"STROBE_TEST_PATH", L"half \xD83D.");
  EXPECT_EQ(WindowsPlatform::EnvironmentVariable("STROBE_TEST_PATH"), "half \xEF\xBF\xBD.");
  const std::wstring longest(32'000, L'x');
  SetEnvironmentVariableW(L"STROBE_TEST_PATH", longest.c_str());
  EXPECT_EQ(WindowsPlatform::EnvironmentVariable("STROBE_TEST_PATH"),
            std::string(longest.size(), 'x'));
  SetEnvironmentVariableW(L"STROBE_TEST_PATH", nullptr);
  EXPECT_EQ(WindowsPlatform::EnvironmentVariable("STROBE_TEST_PATH"), std::nullopt);
}

TEST_F(WindowsPlatformTest, ASleepIsNoShorterThanAskedFor) {
  for (const std::int64_t time_ns : {0, 100'000, 1'500'000, 20'000'000}) {
    const auto begin = std::chrono::steady_clock::now();
    WindowsPlatform::SleepNs(time_ns);
    // The two clocks need not run alike.
    EXPECT_GE(std::chrono::steady_clock::now() - begin,
              std::chrono::nanoseconds(time_ns - time_ns / 10));
  }
}

// A profiler sleeps a thousand times a second, and several may at a time.
TEST_F(WindowsPlatformTest, SleepsLeaveNoHandlesBehind) {
  const auto handles = [] {
    DWORD count = 0;
    EXPECT_NE(GetProcessHandleCount(GetCurrentProcess(), &count), 0);
    return count;
  };
  WindowsPlatform::SleepNs(0);
  const DWORD before = handles();
  {
    std::vector<std::jthread> sleepers;
    for (int i = 0; i < 3; ++i) {
      sleepers.emplace_back([] {
        for (int turn = 0; turn < 100; ++turn) WindowsPlatform::SleepNs(10'000);
      });
    }
  }
  EXPECT_LE(handles(), before + 10);
}

// The thread that stopped another never resumes it.
TEST_F(WindowsPlatformTest, TheWatchdogResumesAThreadThatStaysStopped) {
  static const Worker* stopped = nullptr;
  static bool runs_on = false;
  Worker worker;
  stopped = &worker;
  const auto copy = std::make_unique<internal::StackCopy>();
  std::shared_ptr<internal::KnownThread> thread = internal::KnownThread::Find(worker.id());
  ASSERT_NE(thread, nullptr);
  ASSERT_TRUE(Eventually([&] { return internal::CopyStack(*thread, *copy); }));
  const std::uint64_t given_up = internal::GlobalHandlerCounters().threads_given_up;
  // A machine that stood still meanwhile has made some of them.
  for (int stalls = thread->stalls; stalls < internal::kMaxStalls; ++stalls) {
    const std::uint64_t resumed = internal::GlobalStopCounters().resumed;
    runs_on = false;
    // No thread is stopped while another holds the process's lock.
    ASSERT_TRUE(Eventually([&] {
      EXPECT_FALSE(internal::CopyStack(*thread, *copy, [] {
        const std::uint64_t turns = stopped->turns();
        runs_on = Eventually([&] { return stopped->turns() > turns; });
      }));
      return thread->stalls > stalls;
    }));
    EXPECT_TRUE(runs_on);
    EXPECT_EQ(internal::GlobalStopCounters().resumed, resumed + 1);
  }
  EXPECT_EQ(internal::GlobalHandlerCounters().threads_given_up, given_up + 1);
  EXPECT_FALSE(WindowsPlatform::Interrupt(worker.id(), kPayload, 0, false)) << "left in peace";
  EXPECT_EQ(arrival.calls, 0);
  worker.End();
  thread.reset();
  EXPECT_EQ(internal::GlobalHandlerCounters().threads_given_up, given_up) << "it has ended";
}

}  // namespace
}  // namespace strobe
