// Allocations of the profiler's own that fail: on the program's threads, inside of its calls, and
// on the profiler's threads. The program runs on, calls say so, and no amount is lost uncounted.
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <climits>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <new>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "forked_child.h"
#include "gtest/gtest.h"

namespace {

// Which allocations fail, counted from 1.
struct Failures {
  int first = INT_MAX;
  int count = 0;

  [[nodiscard]] bool Hits(int number) const { return number >= first && number - first < count; }
};

// Those of the calling thread, as far as it wants any.
struct OfThread {
  bool is_counting = false;
  bool is_own = false;  // one of the profiler's threads
  int number = 0;
  Failures failures;
};
constinit thread_local OfThread of_thread;

// Those of all of the profiler's own threads.
constinit std::atomic<int> own_number{0};
constinit std::atomic<int> own_first{INT_MAX};
constinit std::atomic<int> own_count{0};

bool Fails() {
  if (of_thread.is_counting) return of_thread.failures.Hits(++of_thread.number);
  return of_thread.is_own && Failures{own_first, own_count}.Hits(++own_number);
}

[[gnu::noinline]] void* Allocate(std::size_t bytes, std::size_t alignment) {
  void* const memory = Fails() ? nullptr : std::aligned_alloc(alignment, bytes);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}
std::size_t Padded(std::size_t bytes, std::size_t alignment) {
  return (bytes + alignment - 1) / alignment * alignment;
}

}  // namespace

void* operator new(std::size_t bytes) {
  return Allocate(Padded(bytes, alignof(std::max_align_t)), alignof(std::max_align_t));
}
void* operator new(std::size_t bytes, std::align_val_t alignment) {
  const auto align = static_cast<std::size_t>(alignment);
  return Allocate(Padded(bytes, align), align);
}
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t /*bytes*/) noexcept { operator delete(memory); }
void operator delete(void* memory, std::align_val_t /*alignment*/) noexcept {
  operator delete(memory);
}
void operator delete(void* memory, std::size_t /*bytes*/, std::align_val_t /*alignment*/) noexcept {
  operator delete(memory);
}

namespace strobe {
namespace {

using testing::BurnCpu;
using testing::CpuBounds;
using testing::KeptProfiles;
using testing::RunInChild;
using testing::RunRegistered;
using testing::SumByName;

struct MarkingPlatform : NativePlatform {
  static OwnThread RunOnOwnThread(const char* name, std::function<void()> body) {
    return NativePlatform::RunOnOwnThread(name, [body = std::move(body)] {
      of_thread.is_own = true;
      body();
    });
  }
};

// Writes the file; keeps the profile as its last deed, so that no profile is kept twice. Keeps no
// window: the periods have its samples.
class WritingExporter {
 public:
  static constexpr bool kTakesWindows = true;
  explicit WritingExporter(const ExporterOptions& options) : files_(options) {}
  absl::StatusOr<std::string> Export(const ExportRequest& request) {
    absl::StatusOr<std::string> path = files_.Export(request);
    if (path.ok() && request.profile.window.empty()) KeptProfiles::Add({request.profile, {}});
    return path;
  }

 private:
  FileExporter files_;
};

struct MarkingTraits : DefaultTraits {
  using Platform = MarkingPlatform;
  using Outputs = OutputList<Output<PprofEncoder, WritingExporter>>;
};
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wattributes"  // holds what is hidden
using MarkingProfiler = BasicProfiler<MarkingTraits>;
#pragma GCC diagnostic pop

ProfilerOptions Options() {
  static const std::string directory =
      (std::filesystem::temp_directory_path() / ("strobe-no-memory-" + std::to_string(getpid())))
          .string();
  return {.sampling = {.cpu_frequency_hz = 1000},
          .collector = {.drain_period_ms = 1},
          .keep = {.last_s = 0.3},
          .exporter = {.directory = directory, .period_s = 0.02, .max_files = 3}};
}

// Runs body() with those allocations of the calling thread failing; whether there were so many.
template <class Body>
bool RunWithFailures(Failures failures, Body&& body) {
  of_thread.number = 0;
  of_thread.failures = failures;
  of_thread.is_counting = true;
  body();
  of_thread.is_counting = false;
  return of_thread.number >= failures.first;
}
// Those of the profiler's own threads from now on.
void FailOnOwnThreads(Failures failures) {
  own_first = INT_MAX;
  own_number = 0;
  own_count = failures.count;
  own_first = failures.first;
}

bool IsExpected(const absl::Status& status) {
  return status.ok() || absl::IsResourceExhausted(status) || absl::IsFailedPrecondition(status);
}

std::int64_t SumOfKept() {
  std::int64_t sum = 0;
  for (const auto& [name, ns] : SumByName(KeptProfiles::Take(), "cpu")) sum += ns;
  return sum;
}

// What was exported and what was counted as dropped is what the clocks of the threads say.
void ExpectAllIsCounted(MarkingProfiler& profiler, const CpuBounds& bounds) {
  const std::int64_t sum_ns = SumOfKept() + profiler.stats().amount_dropped;
  EXPECT_GE(sum_ns, bounds.low_ns);
  EXPECT_LE(sum_ns, bounds.high_ns);
}

class NoMemory : public ::testing::Test {
 protected:
  void SetUp() override { KeptProfiles::Take(); }
  void TearDown() override {
    FailOnOwnThreads({});
    std::filesystem::remove_all(*Options().exporter.directory);
  }
};

// The public calls, in the order of a program's.
enum class Call {
  kConstruct,
  kRegister,
  kRegisterCode,
  kStart,
  kFlush,
  kRecord,
  kRecordLast,
  kDumpLast,
  kStats,
  kDiagnose,
  kStop,
  kEnd
};
constexpr int kCalls = static_cast<int>(Call::kEnd) + 1;

// A program in which some allocations fail in one call; true where that makes so many.
bool UseWithFailures(Call failing, Failures failures) {
  SCOPED_TRACE(::testing::Message()
               << "call " << static_cast<int>(failing) << ", allocation " << failures.first);
  bool were_enough = false;
  const auto run = [&](Call call, auto&& body) {
    were_enough |= RunWithFailures(call == failing ? failures : Failures(), body);
  };
  ProfilerOptions options = Options();
  std::optional<MarkingProfiler> profiler;
  run(Call::kConstruct, [&] { profiler.emplace(std::move(options)); });
  const std::int64_t begin_ns = testing::ThreadCpuNs();
  Registration registration;
  CodeRegistration code;
  absl::Status status;
  run(Call::kRegister, [&] { registration = profiler->RegisterThread("a name of some length"); });
  EXPECT_TRUE(IsExpected(registration.status())) << registration.status();
  static const char generated[64] = {};
  run(Call::kRegisterCode,
      [&] { code = profiler->RegisterCode({.name = "code", .start = generated, .bytes = 64}); });
  EXPECT_TRUE(IsExpected(code.status())) << code.status();
  run(Call::kStart, [&] { status = profiler->Start(); });
  EXPECT_TRUE(IsExpected(status)) << status;
  const bool is_sampled = status.ok() && registration.status().ok();
  const std::int64_t started_ns = testing::ThreadCpuNs();
  BurnCpu(1'000'000);
  run(Call::kFlush, [&] { status = profiler->Flush(); });
  EXPECT_TRUE(IsExpected(status)) << status;
  run(Call::kRecord, [&] { status = profiler->Record(std::chrono::milliseconds(1)).status(); });
  EXPECT_TRUE(IsExpected(status)) << status;
  run(Call::kRecordLast,
      [&] { status = profiler->Record({.last = std::chrono::seconds(1)}).status(); });
  EXPECT_TRUE(IsExpected(status)) << status;
  run(Call::kDumpLast, [&] { status = profiler->DumpLast(); });
  EXPECT_TRUE(IsExpected(status)) << status;
  run(Call::kStats, [&] { static_cast<void>(profiler->stats()); });
  run(Call::kDiagnose, [&] { static_cast<void>(profiler->Diagnose()); });
  const std::int64_t used_ns = testing::ThreadCpuNs() - started_ns;
  run(Call::kStop, [&] { status = profiler->Stop(); });
  EXPECT_TRUE(IsExpected(status)) << status;
  ExpectAllIsCounted(
      *profiler, is_sampled ? CpuBounds{used_ns, testing::ThreadCpuNs() - begin_ns} : CpuBounds());
  run(Call::kEnd, [&] {
    registration = {};
    code = {};
    profiler.reset();
  });
  return were_enough;
}

TEST_F(NoMemory, NoCallFailsButByItsStatus) {
  for (int call = 0; call < kCalls; ++call) {
    for (const int count : {1, INT_MAX}) {
      for (int first = 1; UseWithFailures(static_cast<Call>(call), {first, count});
           first += 1 + first / 6) {
      }
    }
  }
}

// A session with threads that come and go, while allocations of the profiler's own threads fail;
// true where these make so many.
bool ProfileWithFailures(Failures failures, bool until_the_end) {
  SCOPED_TRACE(::testing::Message() << "allocation " << failures.first);
  MarkingProfiler profiler(Options());
  EXPECT_TRUE(profiler.Start().ok());
  FailOnOwnThreads(failures);
  std::thread recorder([&] {
    EXPECT_TRUE(IsExpected(profiler.Record(std::chrono::milliseconds(3)).status()));
    EXPECT_TRUE(IsExpected(profiler.Record({.last = std::chrono::seconds(1)}).status()));
    EXPECT_TRUE(IsExpected(profiler.DumpLast()));
    EXPECT_TRUE(IsExpected(profiler.Record(kMaxRecordingDuration).status()));
  });
  CpuBounds bounds;
  for (int i = 0; i < 3; ++i)
    std::thread([&] { bounds += RunRegistered(profiler, "t", [] { BurnCpu(2'000'000); }); }).join();
  if (!until_the_end) FailOnOwnThreads({});
  EXPECT_TRUE(IsExpected(profiler.Stop()));
  recorder.join();
  const bool were_enough = own_number >= failures.first;
  FailOnOwnThreads({});
  ExpectAllIsCounted(profiler, bounds);
  return were_enough;
}

TEST_F(NoMemory, OnOwnThreadsEachAmountIsExportedOrCounted) {
  constexpr int kMost = 2000;
  for (const int count : {1, 30}) {
    for (int first = 1;
         ProfileWithFailures({first, count}, /*until_the_end=*/true) && first < kMost;
         first += 1 + first / 4) {
    }
  }
}

TEST_F(NoMemory, OnOwnThreadsForAWholeSession) {
  ProfileWithFailures({1, INT_MAX}, /*until_the_end=*/false);
  ProfileWithFailures({1, INT_MAX}, /*until_the_end=*/true);
}

// In a child: the limit holds for good.
void UseUnderLimit(std::size_t bytes_left) {
  MarkingProfiler profiler(Options());
  STROBE_CHILD_CHECK(profiler.Start().ok());
  std::atomic<bool> is_limited{false};
  std::thread worker([&] {
    is_limited.wait(false);
    for (int i = 0; i < 20; ++i) {
      const Registration registration = profiler.RegisterThread("worker");
      BurnCpu(1'000'000);
    }
  });
  const rlimit limit{.rlim_cur = 1, .rlim_max = RLIM_INFINITY};
  setrlimit(RLIMIT_AS, &limit);  // less than there is: nothing more can be mapped
  std::vector<void*> taken(1 << 16);
  std::size_t count = 0;
  for (std::size_t bytes = 1 << 20; bytes >= 64; bytes /= 2) {
    void* memory = nullptr;
    while (count < taken.size() && (memory = std::malloc(bytes)) != nullptr)
      taken[count++] = memory;
  }
  for (std::size_t freed = 0; count > 0 && freed < bytes_left; freed += 64)
    std::free(taken[--count]);
  is_limited = true;
  is_limited.notify_all();
  worker.join();
  STROBE_CHILD_CHECK(IsExpected(profiler.Flush()));
  STROBE_CHILD_CHECK(IsExpected(profiler.Stop()));
  static_cast<void>(profiler.Start());
  static_cast<void>(profiler.Stop());
}

TEST_F(NoMemory, UnderALimitToTheAddressSpace) {
  for (const std::size_t bytes_left : {0, 4 << 10, 32 << 10, 256 << 10})
    EXPECT_EQ(RunInChild([&] { UseUnderLimit(bytes_left); }), 0) << bytes_left << " bytes left";
}

}  // namespace
}  // namespace strobe
