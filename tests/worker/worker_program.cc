// A program with a worker: two threads of known shares, and short ones. Its end is the argument's.
// The shares have labels and zones, the other thread a trace of two spans, of which one is slow.
// A further thread works in generated code.
//
//   STROBE_WORKER=1 worker_program DIRECTORY SECONDS END
//
// with an END of stop, exit, kill, abort, again, lost, closed, orphan, toggle, fork, record,
// family, attach, scribble, count, signals.
//
// "count": says "begun", and at its end what CPU time its threads have used: see worker_soak.py.
// "signals": the program blocks all signals, and prints how many it takes. No test sends one.
// "scribble": a child writes into the memory that the worker shares, at random, and ends it all.
// "fork": a child does all once more, with a session of its own, while the program's goes on.
// "follow": the same, by STROBE_FOLLOW_FORKS.
// "record": makes three recordings meanwhile: one until the session's end, a short one with one
// column, one that is cancelled. Says what each has of the main thread, and what CPU time the main
// thread has used at least since the first began.
// "toggle": the signal of STROBE_TOGGLE_SIGNAL begins the session, and ends it; then comes a line.
// "attach": says how many nanoseconds the profiler's begin took, and goes on as "again".
// "family": a forked child, and one that it executes, have profilers of their own, too.
// "orphan": leaves a child behind, which has all its descriptors but the standard ones, and dies.
// "again": says "half", waits for a line, and does all once more.
// "lost", "closed": so, but closes its sockets, or all its files, before it goes on. A child has
// them all the same.
// "kill", "abort", "orphan": of the main thread, the worker knows by then what it has used.
#include <errno.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <mutex>
#include <random>
#include <span>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include "strobe/clock/system_clock.h"
#include "strobe/platform/native.h"
#include "strobe/process_label.h"
#include "strobe/profiler.h"
#include "strobe/scoped_labels.h"
#include "strobe/scoped_trace.h"
#include "strobe/scoped_zone.h"
#include "strobe/worker/program/remote_platform.h"
#include "strobe/worker/run_worker.h"

namespace {

volatile std::uint64_t sink = 0;

__attribute__((noinline)) void Spin(int rounds) {
  std::uint64_t value = sink;
  for (int i = 0; i < rounds; ++i) value = value * 6364136223846793005 + 1;
  sink = value;
}
// A set of labels from before there is a profiler.
const strobe::Labels early_labels = strobe::Labels::Of({{"endpoint", "/pay"}, {"shard", 7}});

// Three quarters and a quarter of a thread's time.
__attribute__((noinline)) void MostOfIt() {
  const strobe::ScopedLabels labels(early_labels);
  Spin(300'000);
  sink = sink + 1;
}
__attribute__((noinline)) void TheRest() {
  const strobe::ScopedZone outer("rest");
  const strobe::ScopedZone inner("of it");
  Spin(100'000);
  sink = sink + 1;
}

std::int64_t CpuNs() {
  return strobe::NativePlatform::ThreadCpuTimeNs(strobe::NativePlatform::CurrentThreadId());
}

std::atomic<std::int64_t> rounds{0};         // of work
std::atomic<std::int64_t> others_cpu_ns{0};  // of registered threads but the main one

std::mutex ended_mutex;
std::vector<pid_t> ended;  // threads, which have ended or are about to

// Closes those of its files, but the standard ones, of which is_lost says so. A child, which ends
// with the calling thread, keeps all.
template <class Predicate>
void LoseFiles(const Predicate& is_lost) {
  const pid_t program = getpid();
  if (fork() == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    while (getppid() == program) pause();
    _exit(0);
  }
  for (int number = STDERR_FILENO + 1; number < 1024; ++number) {
    std::error_code error;
    const std::string link = "/proc/self/fd/" + std::to_string(number);
    const std::filesystem::path file = std::filesystem::read_symlink(link, error);
    if (!error && is_lost(file.string())) close(number);
  }
}

// The calling thread's CPU time from here to its end.
struct Counted {
  const std::int64_t begin_ns = CpuNs();
  ~Counted() {
    others_cpu_ns += CpuNs() - begin_ns;
    const std::lock_guard lock(ended_mutex);
    ended.push_back(gettid());
  }
};

// How many threads there are. A thread that has been joined is there for a moment yet.
int CountThreads() {
  constexpr int kMostLooks = 60'000;
  for (const pid_t thread : ended) {
    const std::string directory = "/proc/self/task/" + std::to_string(thread);
    for (int look = 0; look < kMostLooks && std::filesystem::exists(directory); ++look)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  int threads = 0;
  std::ifstream status_file("/proc/self/status");
  for (std::string line; std::getline(status_file, line);) {
    if (line.starts_with("Threads:")) threads = std::atoi(line.c_str() + 8);
  }
  return threads;
}

// Has the worker read the clock of the calling thread, which waits meanwhile.
bool HaveClockRead(strobe::Profiler& profiler) {
  return profiler.Record(std::chrono::milliseconds(1)).ok();
}

// What a thread had used of its CPU time at some time.
struct Mark {
  std::int64_t unix_ns;
  std::int64_t cpu_ns;
};
std::vector<Mark>* main_marks = nullptr;  // of the main thread, if it keeps them
const pid_t main_id = gettid();

void Work(std::int64_t cpu_ns) {
  for (const std::int64_t begin_ns = CpuNs(); CpuNs() - begin_ns < cpu_ns;) {
    if (main_marks != nullptr && gettid() == main_id)
      main_marks->push_back({strobe::SystemClock().UnixTimeNs(), CpuNs()});
    MostOfIt();
    TheRest();
    rounds.fetch_add(1, std::memory_order_relaxed);
  }
}

// Generated code that counts down from its argument, with a frame pointer. nullptr if the system
// refuses memory for it.
constexpr std::array<unsigned char, 15> kCountDown = {0x55,              // push rbp
                                                      0x48, 0x89, 0xe5,  // mov rbp, rsp
                                                      0x48, 0x89, 0xf8,  // mov rax, rdi
                                                      0x48, 0xff, 0xc8,  // dec rax
                                                      0x75, 0xfb,        // jnz to the line before
                                                      0x5d,              // pop rbp
                                                      0xc3,              // ret
                                                      0x90};
const void* MakeCountDown() {
  constexpr std::size_t kBytes = 4096;
  void* const page =
      mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (page == MAP_FAILED) return nullptr;
  std::memcpy(page, kCountDown.data(), kCountDown.size());
  return mprotect(page, kBytes, PROT_READ | PROT_EXEC) == 0 ? page : nullptr;
}

__attribute__((noinline)) void WorkInGeneratedCode(const void* code, std::int64_t cpu_ns) {
  const auto count_down = reinterpret_cast<void (*)(std::uint64_t)>(const_cast<void*>(code));
  for (const std::int64_t begin_ns = CpuNs(); CpuNs() - begin_ns < cpu_ns;) {
    count_down(1'000'000);
    sink = 0;
  }
}

void WorkOnThreads(strobe::Profiler& profiler, const void* generated_code, std::int64_t cpu_ns) {
  std::thread other([&] {
    const strobe::Registration own = profiler.RegisterThread("other");
    const Counted counted;
    const strobe::ScopedTrace trace(0x1234, 0x57, 0x78);
    {
      const strobe::ScopedTrace slow(0x1234, 0x56, 0x78, {.slow_over_ns = 1});
      Work(cpu_ns / 4);
    }
    Work(cpu_ns / 4);
  });
  std::thread generated([&] {
    const strobe::Registration own = profiler.RegisterThread("generated");
    const Counted counted;
    WorkInGeneratedCode(generated_code, cpu_ns / 4);
  });
  Work(cpu_ns);
  for (int i = 0; i < 20; ++i) {
    std::thread([&] {
      const strobe::Registration own = profiler.RegisterThread("short");
      const Counted counted;
      Work(1'000'000);
    }).join();
  }
  other.join();
  generated.join();
}

// A child that is profiled by itself, and another that is this program once more.
void BeginFamily(char** argv, std::int64_t cpu_ns) {
  if (fork() == 0) {
    strobe::Profiler own({.exporter = {.directory = argv[1]}});
    const strobe::Registration registration = own.RegisterThread("child");
    const bool is_begun = own.Start().ok();
    Work(cpu_ns);
    _exit(is_begun && own.Stop().ok() ? 0 : 1);
  }
  char stop[] = "stop";
  char* const arguments[] = {argv[0], argv[1], argv[2], stop, nullptr};
  if (fork() == 0) {
    execv("/proc/self/exe", arguments);
    _exit(1);
  }
}

bool AwaitFamily() {
  bool is_well = true;
  for (int status = 0; wait(&status) > 0;) is_well = is_well && status == 0;
  return is_well;
}

// Writes over the registrations, channels and rings of the first threads, and announces
// registrations, while the worker drains. The program itself stands still: its own captures would
// meet all that, too.
void Scribble(std::uint64_t seed) {
  constexpr std::uint32_t kRegistrations = 64;
  constexpr std::size_t kRingsBytes = std::size_t{1} << 20;
  const strobe::internal::SharedArea& area = strobe::internal::RemotePlatform::Area();
  auto* const front = reinterpret_cast<std::byte*>(&area.header());
  const std::span<std::byte> chunk = area.Chunk(0);
  const std::array<std::span<std::byte>, 3> places{
      std::span(front, reinterpret_cast<std::byte*>(area.At(kRegistrations)) - front),
      chunk.first(64 * 1024), chunk.first(kRingsBytes)};
  std::mt19937_64 random(seed);
  const strobe::SystemClock clock;
  for (const std::int64_t begin_ns = clock.MonotonicNs();
       clock.MonotonicNs() - begin_ns < 1'000'000'000;) {
    for (int i = 0; i < 100; ++i) {
      const std::span<std::byte> place = places[random() % places.size()];
      const std::uint64_t word = random() >> random() % 64;
      std::memcpy(place.data() + random() % (place.size() / 8) * 8, &word, sizeof(word));
    }
    area.Announce(static_cast<std::uint32_t>(random() % kRegistrations));
  }
}

void EndScribbled(std::uint64_t seed) {
  const pid_t program = getpid();
  if (fork() == 0) {
    Scribble(seed);
    kill(program, SIGKILL);
    _exit(0);
  }
  raise(SIGSTOP);
}

void Say(const char* word) {
  std::puts(word);
  std::fflush(stdout);
}

void SayRecorded(const char* what, const absl::StatusOr<strobe::Profile>& profile) {
  long long main_ns = 0;
  long long pay_ns = 0;
  for (std::size_t i = 0; profile.ok() && i < profile->samples.size(); ++i) {
    const strobe::LabelSet& labels = profile->Labels(i);
    if (labels.Text(strobe::kThreadNameLabel) != "main") continue;
    main_ns += profile->Values(i)[profile->default_value_type];
    if (labels.Text("endpoint") == "/pay")
      pay_ns += profile->Values(i)[profile->default_value_type];
  }
  std::printf("%s %s duration %lld columns %d main %lld pay %lld\n", what,
              profile.ok() ? "OK" : profile.status().ToString().c_str(),
              profile.ok() ? static_cast<long long>(profile->duration_ns) : 0,
              profile.ok() ? static_cast<int>(profile->value_types.size()) : 0, main_ns, pay_ns);
}

// What the marks say that their thread has used since then, at least.
std::int64_t UsedSince(std::int64_t unix_ns, const std::vector<Mark>& marks) {
  constexpr std::int64_t kClocksApartNs = 1'000'000;  // at most: a profile's time, and the marks'
  for (const Mark& mark : marks) {
    if (mark.unix_ns >= unix_ns + kClocksApartNs) return marks.back().cpu_ns - mark.cpu_ns;
  }
  return 0;
}

// Works, and ends the session.
absl::Status WorkAndRecord(strobe::Profiler& profiler, const void* code, std::int64_t cpu_ns) {
  using std::chrono::hours;
  std::vector<Mark> marks;
  main_marks = &marks;
  absl::StatusOr<strobe::Profile> recorded;
  std::thread whole([&] { recorded = profiler.Record(hours(1)); });
  std::thread others([&] {
    // First, while the other threads work.
    SayRecorded("short", profiler.Record(
                             {.duration = std::chrono::milliseconds(200), .value_types = {"cpu"}}));
    const auto cancelled = std::make_shared<const std::atomic<bool>>(true);
    SayRecorded("cancelled", profiler.Record({.duration = hours(1), .cancelled = cancelled}));
  });
  WorkOnThreads(profiler, code, cpu_ns);
  others.join();
  absl::Status status = profiler.Stop();
  whole.join();
  main_marks = nullptr;
  SayRecorded("whole", recorded);
  std::printf("least %lld\n",
              static_cast<long long>(recorded.ok() ? UsedSince(recorded->time_ns, marks) : 0));
  return status;
}

// Works for a while, and says what CPU time all registered threads have used, and what of it the
// profiler counts as lost.
int Count(strobe::Profiler& profiler, const void* code, std::int64_t cpu_ns) {
  Say("begun");
  const std::int64_t begin_ns = CpuNs();
  for (int i = 0; i < 4; ++i) WorkOnThreads(profiler, code, cpu_ns / 4);
  const long long used_ns = CpuNs() - begin_ns + others_cpu_ns.load();
  static_cast<void>(profiler.Stop());
  std::printf("cpu %lld lost %lld rounds %lld\n", used_ns,
              static_cast<long long>(profiler.stats().amount_dropped),
              static_cast<long long>(rounds.load()));
  return 0;
}

// Blocks all signals and works until the worker has looked at the calling thread many times. Takes
// pending signals by sigtimedwait and by a signalfd. Returns how many it has taken. Nobody sends
// any.
int TakeSignals(strobe::Profiler& profiler) {
  constexpr int kRecordings = 50;
  sigset_t all;
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, nullptr);
  const int file = signalfd(-1, &all, SFD_CLOEXEC | SFD_NONBLOCK);
  const auto take = [&] {
    int taken = 0;
    const timespec none{};
    while (sigtimedwait(&all, nullptr, &none) > 0) ++taken;
    for (signalfd_siginfo info{}; read(file, &info, sizeof(info)) > 0;) ++taken;
    return taken;
  };
  // The collector has looked at the mask and sent its request before it records. So what was under
  // way when the mask changed has come by then.
  const bool has_recorded = HaveClockRead(profiler);
  static_cast<void>(take());
  std::atomic<int> recordings{has_recorded ? 0 : kRecordings};
  std::thread recorder([&] {
    while (recordings < kRecordings) recordings += HaveClockRead(profiler) ? 1 : kRecordings;
  });
  int taken = has_recorded ? 0 : -1;
  while (recordings < kRecordings) {
    MostOfIt();
    taken += take();
  }
  recorder.join();
  close(file);
  pthread_sigmask(SIG_UNBLOCK, &all, nullptr);
  return taken;
}

// Waits until the signal has begun the session.
void AwaitToggle(strobe::Profiler& profiler) {
  Say("ready");
  while (absl::IsFailedPrecondition(profiler.Flush())) std::this_thread::yield();
}

strobe::CodeRegistration RegisterCountDown(strobe::Profiler& profiler, const void* code) {
  strobe::CodeRegistration registration =
      profiler.RegisterCode({.name = "count_down", .start = code, .bytes = kCountDown.size()});
  if (!registration.status().ok())
    std::fprintf(stderr, "%s\n", registration.status().ToString().c_str());
  return registration;
}

// In a child that the program has forked: nothing is registered there. Returns its exit status.
int RunChild(strobe::Profiler& profiler, const void* code, std::int64_t cpu_ns) {
  const strobe::Registration registration = profiler.RegisterThread("main");
  const strobe::CodeRegistration code_registration = RegisterCountDown(profiler, code);
  if (!registration.status().ok() || !profiler.Start().ok()) return 5;
  WorkOnThreads(profiler, code, cpu_ns);
  return profiler.Stop().ok() ? 0 : 6;
}

// The same in a child that goes on by itself (STROBE_FOLLOW_FORKS).
int RunFollowedChild(strobe::Profiler& profiler, const void* code, std::int64_t cpu_ns) {
  using std::chrono::milliseconds;
  while (absl::IsFailedPrecondition(profiler.Record(milliseconds(1)).status()))
    std::this_thread::yield();
  const strobe::CodeRegistration code_registration = RegisterCountDown(profiler, code);
  WorkOnThreads(profiler, code, cpu_ns);
  return profiler.Stop().ok() ? 0 : 6;
}

}  // namespace

int main(int argc, char** argv) {
  strobe::RunWorkerIfAsked(argc, argv);
  if (argc != 4) return 2;
  const auto cpu_ns = static_cast<std::int64_t>(std::atof(argv[2]) * 1e9);
  const std::string end = argv[3];
  strobe::Profiler profiler(
      {.sampling = {.cpu_frequency_hz = 200}, .exporter = {.directory = argv[1]}});
  const strobe::Registration registration = profiler.RegisterThread("main");
  const void* const code = MakeCountDown();
  const strobe::CodeRegistration code_registration = RegisterCountDown(profiler, code);
  const std::int64_t begin_ns = strobe::SystemClock().MonotonicNs();
  const strobe::ProcessLabel level("level", "forest");
  if (end == "toggle") {
    AwaitToggle(profiler);
  } else if (const absl::Status status = profiler.Start(); !status.ok()) {
    std::fprintf(stderr, "%s\n", status.ToString().c_str());
    return 3;
  }
  if (waitpid(-1, nullptr, WNOHANG | __WALL) != -1 || errno != ECHILD)
    std::fprintf(stderr, "the worker is a child of the program\n");
  if (end == "attach") {
    std::printf("attach %lld\n",
                static_cast<long long>(strobe::SystemClock().MonotonicNs() - begin_ns));
    std::fflush(stdout);
  }
  if (end == "family") BeginFamily(argv, cpu_ns);
  if (end == "count") return Count(profiler, code, cpu_ns);
  absl::Status status;
  if (end == "record") {
    status = WorkAndRecord(profiler, code, cpu_ns);
  } else {
    WorkOnThreads(profiler, code, cpu_ns);
  }
  if (end == "family" && !AwaitFamily()) return 5;
  if (end == "signals") std::printf("taken %d\n", TakeSignals(profiler));
  if (end == "again" || end == "attach" || end == "lost" || end == "closed") {
    Say("half");
    std::getchar();
    if (end == "lost")
      LoseFiles([](const std::string& file) { return file.starts_with("socket"); });
    if (end == "closed") LoseFiles([](const std::string& /*file*/) { return true; });
    // Notices that the worker has died.
    std::thread([&] { const auto own = profiler.RegisterThread("first"); }).join();
    WorkOnThreads(profiler, code, cpu_ns);
  }
  const bool is_sudden = end == "kill" || end == "abort" || end == "orphan";
  if (is_sudden && !HaveClockRead(profiler)) return 7;
  std::printf("%d threads, cpu %lld\n", CountThreads(), static_cast<long long>(CpuNs()));
  std::fflush(stdout);
  if (end == "orphan") {
    if (const pid_t child = fork(); child == 0) {
      for (const int standard : {0, 1, 2}) close(standard);
      pause();
    } else {
      std::printf("child %d cpu %lld\n", child, static_cast<long long>(CpuNs()));
      std::fflush(stdout);
      kill(getpid(), SIGKILL);
    }
  }
  if (end == "scribble") EndScribbled(static_cast<std::uint64_t>(getpid()));
  if (end == "toggle") {
    std::getchar();
    return 0;
  }
  if (end == "fork" || end == "follow") {
    const pid_t child = fork();
    if (child == 0) return (end == "fork" ? RunChild : RunFollowedChild)(profiler, code, cpu_ns);
    int status = 0;
    waitpid(child, &status, 0);
    if (status != 0) std::fprintf(stderr, "the child's status: %d\n", status);
  }
  if (end == "kill") kill(getpid(), SIGKILL);
  if (end == "abort") std::abort();
  if (end == "exit") std::exit(0);
  if (end != "record") status = profiler.Stop();
  if (!status.ok()) std::fprintf(stderr, "%s\n", status.ToString().c_str());
  return status.ok() ? 0 : 4;
}
