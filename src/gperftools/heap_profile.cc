#include "heap_profile.h"

#include <algorithm>
#include <cerrno>
#include <ctime>
#include <fstream>
#include <iterator>
#include <limits>
#include <mutex>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "heap_text.h"
#include "strobe/base/memory_guard.h"
#include "strobe/platform/refused_thread.h"
#include "variables.h"

namespace strobe::internal {
namespace {

constexpr std::int64_t kAnyNumber = std::numeric_limits<std::int64_t>::max();
// How many checks there are at least between two files.
constexpr std::int64_t kChecks = 8;
constexpr double kHeapPeriodS = 86'400;
constexpr std::int64_t kMaxIntervalS = 1'000'000'000;  // 30 years
// For a burst of samples in new code, each of which has a copy of its stack. Of the few rings that
// threads share, which are not registered here; committed by the page.
constexpr std::int64_t kHeapRingBytes = 4 << 20;

strobe::ProfilerOptions OptionsOfHeapProfile() {
  strobe::ProfilerOptions options;
  options.exporter.period_s = kHeapPeriodS;
  options.threads.ring_bytes = kHeapRingBytes;
  options.exporter.stop_at_exit = false;  // EndAtExit does more
  options.worker.enabled = false;
  options.threads.follow_forks = false;  // a child calls HeapProfilerStart
  return options;
}

std::int64_t CheckBytes(const HeapIntervals& intervals) {
  std::int64_t least = kAnyNumber;
  for (const std::int64_t bytes : {intervals.allocated_bytes, intervals.in_use_bytes}) {
    if (bytes > 0) least = std::min(least, std::max<std::int64_t>(bytes / kChecks, 1));
  }
  return least;
}

std::string Megabytes(std::int64_t bytes) { return absl::StrCat(bytes >> 20, " MB"); }

}  // namespace

HeapIntervals HeapIntervals::OfVariables() {
  HeapIntervals intervals;
  const auto read = [](const char* name, std::int64_t& value) {
    value = NumberVariable(name, 0, kAnyNumber).value_or(value);
  };
  read("HEAP_PROFILE_ALLOCATION_INTERVAL", intervals.allocated_bytes);
  read("HEAP_PROFILE_INUSE_INTERVAL", intervals.in_use_bytes);
  read("HEAP_PROFILE_TIME_INTERVAL", intervals.time_s);
  intervals.time_s = std::clamp<std::int64_t>(intervals.time_s, 0, kMaxIntervalS);
  return intervals;
}

std::optional<std::string> DueReason(const HeapIntervals& intervals, const HeapAmounts& now,
                                     const HeapAmounts& last) {
  if (intervals.allocated_bytes > 0 &&
      now.allocated_bytes - last.allocated_bytes >= intervals.allocated_bytes) {
    return absl::StrCat(Megabytes(now.allocated_bytes), " allocated cumulatively, ",
                        Megabytes(now.in_use_bytes), " currently in use");
  }
  if (intervals.in_use_bytes > 0 && now.in_use_bytes - last.in_use_bytes > intervals.in_use_bytes)
    return absl::StrCat(Megabytes(now.in_use_bytes), " currently in use");
  if (intervals.time_s > 0 && now.time_s - last.time_s >= intervals.time_s)
    return absl::StrCat(now.time_s - last.time_s, " sec since the last dump");
  return std::nullopt;
}

HeapProfile::HeapProfile()
    : intervals_(HeapIntervals::OfVariables()),
      check_bytes_(CheckBytes(intervals_)),
      profiler_(OptionsOfHeapProfile(), {.exporter = SessionFileExporter(sum_)}),
      // The leaf frames that are left out have that of Record, too.
      target_(TargetOf<AllocationProvider, kAllocationFrames + 1>(profiler_)),
      counting_target_{.record = &Record, .profiler = this} {}

HeapProfile& HeapProfile::OfProcess() {
  static auto* const profile = new HeapProfile;
  return *profile;
}

[[gnu::noinline]] bool HeapProfile::Record(void* self, const SampledAmounts& amounts,
                                           StackKeeper* keeper) {
  auto& profile = *static_cast<HeapProfile*>(self);
  const bool is_taken = profile.target_.record(profile.target_.profiler, amounts, keeper);
  asm volatile("" ::: "memory");  // no tail call: the number of frames is fixed
  const std::int64_t allocated =
      profile.allocated_bytes_.fetch_add(amounts.total, std::memory_order_relaxed) + amounts.total;
  std::int64_t next = profile.next_check_bytes_.load(std::memory_order_relaxed);
  if (allocated >= next && profile.next_check_bytes_.compare_exchange_strong(
                               next, allocated + profile.check_bytes_, std::memory_order_relaxed))
    sem_post(&profile.woken_);
  return is_taken;
}

absl::Status HeapProfile::Start(const std::string& prefix) {
  const std::lock_guard control(control_mutex_);
  const std::lock_guard lock(mutex_);
  if (RunsHere()) return absl::OkStatus();
  if (is_running_) EndAllocations();  // the parent's
  is_running_ = false;
  sum_->Begin({.levels = {"peak_objects", "peak_space", "inuse_objects", "inuse_space"}});
  prefix_ = NativePlatform::Directories().AbsolutePath(prefix);
  allocated_bytes_.store(0);
  next_check_bytes_.store(check_bytes_);
  last_ = {.time_s = std::time(nullptr)};
  sem_init(&woken_, 0, 0);
  if (absl::Status status = profiler_.Start(); !status.ok()) return status;
  const AllocationOptions options{
      .interval_bytes = NumberVariable("TCMALLOC_SAMPLE_PARAMETER", 1, std::int64_t{1} << 40)
                            .value_or(kDefaultSampleBytes)};
  if (absl::Status status = BeginAllocations(counting_target_, options); !status.ok()) {
    static_cast<void>(profiler_.Stop());
    return status;
  }
  is_running_ = true;
  forks_ = NativePlatform::ForkCount();
  is_ending_.store(false);
  watcher_ = NativePlatform::RunOnOwnThread("strobe-heap", [this] { Watch(); });
  static const bool ends_at_exit = NativePlatform::AtExit(
      [] { static_cast<void>(HasMemoryFor([] { OfProcess().EndAtExit(); })); });
  static_cast<void>(ends_at_exit);
  return StatusOfThread("heap profiles at intervals", watcher_);
}

bool HeapProfile::IsRunning() {
  const std::lock_guard lock(mutex_);
  return RunsHere();
}

void HeapProfile::EndWatch() {
  is_ending_.store(true);
  sem_post(&woken_);
  watcher_.Join();
}

void HeapProfile::Stop() {
  const std::lock_guard control(control_mutex_);
  if (!IsRunning()) return;
  EndWatch();
  const std::lock_guard lock(mutex_);
  is_running_ = false;
  EndAllocations();
  static_cast<void>(profiler_.Stop());
}

absl::Status HeapProfile::Dump(std::string_view reason) {
  const std::lock_guard lock(mutex_);
  return RunsHere() ? DumpHere(reason) : absl::OkStatus();
}

absl::Status HeapProfile::DumpHere(std::string_view reason) {
  const std::string path = absl::StrFormat("%s.%04d.heap", prefix_, ++files_);
  NativePlatform::WriteLine(
      absl::StrCat("strobe: dumping heap profile to ", path, " (", std::string(reason), ")"));
  last_.allocated_bytes = allocated_bytes_.load();
  last_.in_use_bytes = std::max(last_.in_use_bytes, AmountsNow().in_use_bytes);
  last_.time_s = std::time(nullptr);
  absl::Status status = Update();
  if (!status.ok()) return status;
  const absl::StatusOr<std::string> bytes = sum_->Get()->Encode();
  if (bytes.ok()) {
    status = WriteWholeFile(path, *bytes);
  } else {
    status = bytes.status();
  }
  if (status.ok()) return status;
  return absl::Status(status.code(), absl::StrCat(path, ": ", status.message()));
}

void HeapProfile::EndAtExit() {
  const std::int64_t in_use = AmountsNow().in_use_bytes;
  const std::string amount = in_use >> 20 > 0   ? Megabytes(in_use)
                             : in_use >> 10 > 0 ? absl::StrCat(in_use >> 10, " kB")
                                                : absl::StrCat(in_use, " bytes");
  static_cast<void>(Dump(absl::StrCat("Exiting, ", amount, " in use")));
  Stop();
}

std::string HeapProfile::Text() {
  const std::lock_guard lock(mutex_);
  if (!RunsHere() || !Update().ok()) return {};
  std::ifstream file("/proc/self/maps");
  const std::string maps(std::istreambuf_iterator<char>(file), {});
  std::string text;
  sum_->Get()->Visit([&](const Profile& profile) { text = HeapText(profile, maps); });
  return text;
}

HeapAmounts HeapProfile::AmountsNow() const {
  HeapAmounts now{.allocated_bytes = allocated_bytes_.load(), .time_s = std::time(nullptr)};
  if (const LiveHeap* const heap = LiveHeap::OfProcess().load())
    heap->blocks.Visit([&](const LiveBlock& block, bool is_live, bool /*is_of_peak*/) {
      now.in_use_bytes += is_live ? block.bytes : 0;
    });
  return now;
}

// On the watcher's thread.
void HeapProfile::Watch() {
  while (!is_ending_.load()) {
    timespec until{};
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += intervals_.time_s;
    if (intervals_.time_s > 0) {
      static_cast<void>(sem_timedwait(&woken_, &until));
    } else {
      static_cast<void>(sem_wait(&woken_));
    }
    static_cast<void>(HasMemoryFor([this] {
      const std::lock_guard lock(mutex_);
      const auto reason = DueReason(intervals_, AmountsNow(), last_);
      if (!reason || is_ending_.load()) return;
      if (const absl::Status status = DumpHere(*reason); !status.ok())
        NativePlatform::WriteLine(absl::StrCat("strobe: no heap profile: ", status.message()));
    }));
  }
}

}  // namespace strobe::internal
