// A program with a worker, and allocations:
//
//   STROBE_WORKER=1 allocation_program DIRECTORY END
//
// with an END of stop, kill, again, scribble, fork, exact, lost.
//
// The main thread and one that is not registered allocate and free 64 MiB each; the main thread
// also keeps 32 MiB. The last profile has that; those before it have what warms the worker up. Says
// what is live, and what was allocated for the last profile.
// "again": says "half", waits for a line, and does all but to keep once more.
// "fork": a child frees what its copy of the program has kept, and allocates as much.
// "scribble": a child writes into what is shared, the live heap too, at random, and ends it all.
// "exact": brings events of known amounts instead, by registered threads and others, and says their
// sums. "lost": the same, and it says "half" and waits for a line, as the worker dies meanwhile.
#include <signal.h>
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
#include <memory>
#include <random>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "strobe/allocations/allocation_sampling.h"
#include "strobe/clock/system_clock.h"
#include "strobe/worker/program/remote_platform.h"
#include "strobe/worker/worker_parts.h"

namespace {

using Profiler = strobe::BasicProfiler<strobe::AllocationTraits>;

constexpr std::size_t kBlockBytes = 16 * 1024;
constexpr std::size_t kMiB = 1024 * 1024;
constexpr std::size_t kGarbageBytes = 64 * kMiB;
constexpr std::size_t kKeptBytes = 32 * kMiB;
constexpr std::int64_t kIntervalBytes = 32 * 1024;

using Blocks = std::vector<std::unique_ptr<char[]>>;

__attribute__((noinline)) void MakeGarbage() {
  for (std::size_t bytes = 0; bytes < kGarbageBytes; bytes += kBlockBytes) {
    char* block = new char[kBlockBytes];
    asm volatile("" : "+r"(block) : : "memory");
    delete[] block;
  }
}

__attribute__((noinline)) void Keep(Blocks& blocks) {
  for (std::size_t bytes = 0; bytes < kKeptBytes; bytes += kBlockBytes)
    blocks.emplace_back(new char[kBlockBytes]);
  asm volatile("" ::: "memory");
}

void MakeGarbageOnThreads() {
  MakeGarbage();
  std::thread(MakeGarbage).join();  // is not registered
}

// Whether the main thread's samples come as its own: the worker has attached it.
bool IsAttached(Profiler& profiler) {
  std::atomic<bool> is_over{false};
  absl::StatusOr<strobe::Profile> recorded;
  std::thread recorder([&] {
    recorded = profiler.Record(
        {.duration = std::chrono::milliseconds(20), .value_types = {"alloc_objects"}});
    is_over = true;
  });
  while (!is_over) MakeGarbage();
  recorder.join();
  for (std::size_t i = 0; recorded.ok() && i < recorded->samples.size(); ++i) {
    const bool is_of_main = recorded->Labels(i).Text(strobe::kThreadNameLabel) == "main";
    if (is_of_main && recorded->Values(i)[0] > 0) return true;
  }
  return false;
}

// Returns when the worker has attached the calling thread, and has tables of the code of all
// allocations.
bool WarmUp(Profiler& profiler) {
  constexpr int kMostLooks = 1000;
  int looks = 0;
  while (!IsAttached(profiler)) {
    if (++looks == kMostLooks) return false;
  }
  for (int round = 0; round < 2; ++round) {
    MakeGarbageOnThreads();
    if (!profiler.Flush().ok()) return false;
  }
  return true;
}

// Writes over the live heap, the registrations, and the channels and rings of the first threads,
// while the worker reads them for a profile each second.
void Scribble(std::uint64_t seed) {
  constexpr std::uint32_t kRegistrations = 64;
  const strobe::internal::SharedArea& area = strobe::internal::RemotePlatform::Area();
  auto* const front = reinterpret_cast<std::byte*>(&area.header());
  const std::array<std::span<std::byte>, 4> places{
      area.Levels(), area.Levels().first(64 * 1024),
      std::span(front, reinterpret_cast<std::byte*>(area.At(kRegistrations)) - front),
      area.Chunk(0).first(64 * 1024)};
  std::mt19937_64 random(seed);
  const strobe::SystemClock clock;
  for (const std::int64_t begin_ns = clock.MonotonicNs();
       clock.MonotonicNs() - begin_ns < 1'500'000'000;) {
    for (int i = 0; i < 100; ++i) {
      const std::span<std::byte> place = places[random() % places.size()];
      const std::uint64_t word = random() >> random() % 64;
      std::memcpy(place.data() + random() % (place.size() / 8) * 8, &word, sizeof(word));
    }
    area.Announce(static_cast<std::uint32_t>(random() % kRegistrations));
  }
}

// Ends the program, which takes no samples meanwhile: its captures believe what it shares.
void EndScribbled() {
  sigset_t all;
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, nullptr);
  const pid_t program = getpid();
  if (fork() == 0) {
    Scribble(static_cast<std::uint64_t>(program));
    kill(program, SIGKILL);
    _exit(0);
  }
  while (true) pause();
}

// A child's own copies of the blocks are none of the program's.
int ForkAndFree(Blocks& blocks) {
  const pid_t child = fork();
  if (child == 0) {
    blocks.clear();
    Keep(blocks);
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return status;
}

// Brings events, and counts those that are taken.
class Events {
 public:
  explicit Events(Profiler& profiler) : profiler_(profiler) {}

  __attribute__((noinline)) void Bring(std::int64_t bytes) {
    for (std::int64_t i = 1; i <= 5000; ++i) {
      if (profiler_.CaptureHere<strobe::AllocationProvider>({1, bytes + i, 0, 0})) {
        objects_ += 1;
        bytes_ += bytes + i;
      }
      if (i % 100 == 0) std::this_thread::yield();
    }
  }
  void BringOnThreads() {
    std::vector<std::thread> threads;
    for (std::int64_t i = 0; i < 4; ++i) {
      threads.emplace_back([this, i] {
        if (i % 2 == 0) return Bring(i);
        const strobe::Registration own = profiler_.RegisterThread("registered");
        Bring(i);
      });
    }
    Bring(10);
    for (std::thread& thread : threads) thread.join();
  }
  void Say() const {
    std::printf("objects %lld bytes %lld\n", static_cast<long long>(objects_.load()),
                static_cast<long long>(bytes_.load()));
    std::fflush(stdout);
  }

 private:
  Profiler& profiler_;
  std::atomic<std::int64_t> objects_{0};
  std::atomic<std::int64_t> bytes_{0};
};

void Say(const char* word) {
  std::puts(word);
  std::fflush(stdout);
}

// With `is_killed`, the worker ends after the second half, of which nothing has been exported.
int RunExact(Profiler& profiler, bool is_killed) {
  Events events(profiler);
  events.BringOnThreads();
  if (!profiler.Flush().ok()) return 5;
  events.BringOnThreads();
  if (is_killed) {
    Say("half");
    std::getchar();
    std::thread([&] { const auto own = profiler.RegisterThread("short"); }).join();
    events.Bring(1);
  }
  if (!profiler.Stop().ok()) return 6;
  events.Bring(1);  // no session takes them
  events.Say();
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  strobe::RunWorkerIfAsked<strobe::AllocationTraits>(argc, argv);
  if (argc != 3) return 2;
  const std::string end = argv[2];
  // Rings that have room for all samples.
  Profiler profiler({.sampling = {.cpu_frequency_hz = 50},
                     .threads = {.max_threads = 100, .ring_bytes = 1 << 20},
                     .exporter = {.directory = argv[1]}});
  const strobe::Registration registration = profiler.RegisterThread("main");
  if (const absl::Status status = profiler.Start(); !status.ok()) {
    std::fprintf(stderr, "%s\n", status.ToString().c_str());
    return 3;
  }
  if (end == "exact" || end == "lost") return RunExact(profiler, end == "lost");
  const strobe::AllocationSampling sampling(profiler, {.interval_bytes = kIntervalBytes});
  if (!WarmUp(profiler)) return 4;
  Blocks blocks;
  blocks.reserve(kKeptBytes / kBlockBytes);
  Keep(blocks);
  MakeGarbageOnThreads();
  if (end == "again") {
    Say("half");
    std::getchar();
    // Notices that the worker has died.
    std::thread([&] { const auto own = profiler.RegisterThread("short"); }).join();
    MakeGarbageOnThreads();
  }
  if (end == "fork" && ForkAndFree(blocks) != 0) return 7;
  std::printf("live %zu allocated %zu untaken %lld\n", kKeptBytes, kKeptBytes + 2 * kGarbageBytes,
              static_cast<long long>(strobe::AllocationSampling::stats().untaken_bytes));
  std::fflush(stdout);
  if (end == "scribble") EndScribbled();
  if (end == "kill") kill(getpid(), SIGKILL);
  const absl::Status status = profiler.Stop();
  if (!status.ok()) std::fprintf(stderr, "%s\n", status.ToString().c_str());
  return status.ok() ? 0 : 8;
}
