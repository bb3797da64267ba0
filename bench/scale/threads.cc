// The axes of threads and of the depth of their stacks.
#include <pthread.h>

#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <optional>
#include <semaphore>
#include <thread>

#include "../no_export.h"
#include "point.h"
#include "strobe/provider/cpu_time_provider.h"
#include "strobe/provider/provider_list.h"
#include "strobe/testing/fakes/archetypes.h"

namespace strobe::testing {
namespace {

constexpr double kSecond = 1e-9;

// A thread that registers, waits and unregisters, each when it is told to.
struct Member {
  BasicProfiler<NoExportTraits>* profiler = nullptr;
  std::binary_semaphore may_go_on{0};
  std::binary_semaphore has_done{0};
  pthread_t thread{};
  std::int64_t register_ns = 0;
  std::int64_t unregister_ns = 0;
  bool is_refused = false;
};

void* RunMember(void* argument) {
  Member& member = *static_cast<Member*>(argument);
  void* volatile memory = std::malloc(100);  // nearly every thread has called it
  std::free(memory);
  std::optional<Registration> registration;
  member.may_go_on.acquire();
  const std::int64_t begin_ns = ThreadCpuNs();
  registration.emplace(member.profiler->RegisterThread("waiting"));
  member.register_ns = ThreadCpuNs() - begin_ns;
  member.is_refused = !registration->status().ok();
  member.has_done.release();
  member.may_go_on.acquire();
  const std::int64_t end_ns = ThreadCpuNs();
  registration.reset();
  member.unregister_ns = ThreadCpuNs() - end_ns;
  member.has_done.release();
  return nullptr;
}

// One step of each thread.
void Step(std::deque<Member>& members) {
  for (Member& member : members) member.may_go_on.release();
  for (Member& member : members) member.has_done.acquire();
}

bool CreateMembers(std::deque<Member>& members) {
  constexpr std::size_t kStackBytes = std::size_t{64} * 1024;
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, kStackBytes);
  for (Member& member : members) {
    const int error = pthread_create(&member.thread, &attributes, &RunMember, &member);
    if (error == 0) continue;
    std::fprintf(stderr, "a thread cannot be created: %s\n", std::strerror(error));
    return false;
  }
  return true;
}

Stats WaitForDrains(BasicProfiler<NoExportTraits>& profiler, std::uint64_t drains) {
  constexpr auto kPoll = std::chrono::milliseconds(20);
  Stats stats = profiler.stats();
  const std::uint64_t end = stats.drains + drains;
  for (; stats.drains < end; stats = profiler.stats()) std::this_thread::sleep_for(kPoll);
  return stats;
}

// What a drain uses of the collector's thread while all threads wait: at first, when the profiler
// does not know them, and later.
void MeasureDrains(BasicProfiler<NoExportTraits>& profiler) {
  constexpr std::uint64_t kFirstDrains = 16, kLaterDrains = 4;
  const auto report = [](const char* metric, const Stats& begin, const Stats& end) {
    const auto cpu_ns = static_cast<double>(end.collector_cpu_ns - begin.collector_cpu_ns);
    ReportPoint(metric, cpu_ns * kSecond / static_cast<double>(end.drains - begin.drains), "s");
  };
  const Stats begin = profiler.stats();
  const Stats known = WaitForDrains(profiler, kFirstDrains);
  report("CPU of one of the first drains", begin, known);
  report("CPU of a later drain", known, WaitForDrains(profiler, kLaterDrains));
}

// A profiler whose events the benchmark brings. Rings have room for a batch of the deepest stacks.
struct EventTraits : NoExportTraits {
  using Providers = ProviderList<CpuTimeProvider, ArchetypeEventProvider>;
};
using EventProfiler = BasicProfiler<EventTraits>;
constexpr std::int64_t kRingBytes = std::int64_t{16} << 20;
constexpr std::size_t kBatch = 256;
constexpr std::size_t kBatches = 32;

// Two functions of each kind, so that stacks differ.
template <int number>
__attribute__((noinline)) bool Leaf(EventProfiler& profiler, bool captures) {
  const bool is_taken = !captures || profiler.CaptureHere<ArchetypeEventProvider>({1, number});
  asm volatile("" ::: "memory");  // no tail call
  return is_taken;
}

// `at_end` is called below `depth` frames.
template <int number>
__attribute__((noinline)) bool Descend(std::size_t depth, bool (*at_end)(EventProfiler&, bool),
                                       EventProfiler& profiler, bool captures) {
  const bool is_good = depth == 0 ? at_end(profiler, captures)
                                  : Descend<number>(depth - 1, at_end, profiler, captures);
  asm volatile("" ::: "memory");  // no tail call
  return is_good;
}

bool AlternateLeaves(EventProfiler& profiler, bool captures) {
  bool is_good = true;
  for (std::size_t i = 0; i < kBatch; ++i)
    is_good &= i % 2 == 0 ? Leaf<1>(profiler, captures) : Leaf<2>(profiler, captures);
  return is_good;
}

// A batch of captures at that depth.
bool RunBatch(std::size_t depth, bool changes_whole, EventProfiler& profiler, bool captures) {
  if (!changes_whole) return Descend<1>(depth, &AlternateLeaves, profiler, captures);
  bool is_good = true;
  for (std::size_t i = 0; i < kBatch; ++i) {
    is_good &= i % 2 == 0 ? Descend<1>(depth, &Leaf<1>, profiler, captures)
                          : Descend<2>(depth, &Leaf<2>, profiler, captures);
  }
  return is_good;
}

bool AreWhole(const Stats& stats, std::size_t samples) {
  std::uint64_t dropped = 0;
  for (const std::uint64_t drops : stats.drops) dropped += drops;
  return dropped == 0 && stats.samples == samples && stats.stacks_overflowed == 0 &&
         stats.stack_ends[static_cast<std::size_t>(StackEnd::kComplete)] == samples;
}

Outcome MeasureChanges(const Point& point, bool changes_whole) {
  ProfilerOptions options;
  options.sampling.cpu_frequency_hz = 0;
  options.sampling.max_frames = static_cast<std::int64_t>(kMaxFramesLimit);
  options.threads.ring_bytes = kRingBytes;
  EventProfiler profiler(options);
  const Registration registration = profiler.RegisterThread("deep");
  if (!registration.status().ok() || !profiler.Start().ok()) return Outcome::kWrong;
  bool is_good = true;
  std::int64_t with_ns = 0, without_ns = 0;
  const ResidentGrowth growth;
  Stats first;
  for (std::size_t i = 0; i <= kBatches; ++i) {  // the first builds the tables
    if (i == 1) with_ns = without_ns = 0, first = profiler.stats();
    for (const bool captures : {false, true}) {
      const std::int64_t begin_ns = ThreadCpuNs();
      is_good &= RunBatch(point.size, changes_whole, profiler, captures);
      (captures ? with_ns : without_ns) += ThreadCpuNs() - begin_ns;
    }
    is_good &= profiler.Flush().ok();
  }
  const Stats stats = profiler.stats();
  const double count = static_cast<double>(kBatches * kBatch);
  ReportPoint("CPU of a capture", static_cast<double>(with_ns - without_ns) * kSecond / count, "s");
  ReportPoint(
      "CPU of the collector a sample",
      static_cast<double>(stats.collector_cpu_ns - first.collector_cpu_ns) * kSecond / count, "s");
  growth.Report();
  is_good &= AreWhole(stats, (kBatches + 1) * kBatch) && profiler.Stop().ok();
  return is_good ? Outcome::kRight : Outcome::kWrong;
}

}  // namespace

Outcome MeasureThreads(const Point& point) {
  constexpr std::int64_t kMostThreads = 65536;
  BasicProfiler<NoExportTraits> profiler({.threads = {.max_threads = kMostThreads}});
  std::deque<Member> members(point.size);
  for (Member& member : members) member.profiler = &profiler;
  if (!profiler.Start().ok()) return Outcome::kWrong;
  if (!CreateMembers(members)) std::_Exit(3);  // the threads wait
  const Stats before = profiler.stats();
  const ResidentGrowth growth;
  Step(members);
  const Stats after = profiler.stats();
  ReportPoint("memory of the profiler", static_cast<double>(after.memory_bytes), "B");
  growth.Report();
  MeasureDrains(profiler);
  bool is_good = true;
  MeasureCpu("CPU of the end of a period", [&] { is_good &= profiler.Flush().ok(); });
  std::int64_t register_ns = 0, unregister_ns = 0;
  Step(members);
  for (Member& member : members) {
    pthread_join(member.thread, nullptr);
    register_ns += member.register_ns;
    unregister_ns += member.unregister_ns;
    is_good &= !member.is_refused;
  }
  ReportPoint("CPU to register all", static_cast<double>(register_ns) * kSecond, "s");
  ReportPoint("CPU to unregister all", static_cast<double>(unregister_ns) * kSecond, "s");
  is_good &= after.threads_registered - before.threads_registered == point.size &&
             profiler.stats().threads_ended == point.size;
  return is_good && profiler.Stop().ok() ? Outcome::kRight : Outcome::kWrong;
}

Outcome MeasureLeafChanges(const Point& point) { return MeasureChanges(point, false); }
Outcome MeasureWholeChanges(const Point& point) { return MeasureChanges(point, true); }

}  // namespace strobe::testing
