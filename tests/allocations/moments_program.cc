// Allocations when little of the program is there: before main, in destructors of thread-local
// objects, in a signal's handler, in a fork's child, in static destructors and in atexit handlers.
// The blocks are far larger than the sampling interval, so what is live of them is known exactly.
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "integration/forked_child.h"
#include "strobe/allocations/allocation_sampling.h"

namespace strobe {
namespace {

using testing::KeptProfiles;

struct KeepingAllocationTraits : testing::NamedKeepingTraits {
  using Providers = ProviderList<CpuTimeProvider, AllocationProvider>;
};
using AllocationProfiler = BasicProfiler<KeepingAllocationTraits>;

constexpr std::int64_t kSize = 1 << 20;

// Makes a block of kSize + `more` bytes. A function of its own for each moment: that is what tells
// the blocks apart.
template <int kMoment>
[[gnu::noinline]] void* MakeAt(std::size_t more) {
  const std::size_t size = kSize + more;
  void* block = std::malloc(size);
  asm volatile("" : "+r"(block) : "i"(kMoment) : "memory");
  std::memset(block, kMoment, size);
  return block;
}
[[gnu::noinline]] void* MakeUnused(std::size_t size) {
  void* block = std::malloc(size);
  asm volatile("" : "+r"(block) : : "memory");
  return block;
}
enum Moment : int {
  kBeforeProfiler,
  kBeforeMain,
  kThreadEnd,
  kKeyEnd,
  kHandler,
  kBeforeFork,
  kChild,
  kStaticEnd,
  kLeak
};

AllocationProfiler* profiler = nullptr;  // never deleted: it is there until the very end
AllocationSampling* sampling = nullptr;

// What is live of a moment, by that profile.
std::int64_t LiveBytesOf(const testing::KeptProfile& kept, int moment) {
  const Profile& profile = kept.profile;
  const auto column = static_cast<std::size_t>(testing::ColumnOf(profile, "inuse_space"));
  const std::string function = "MakeAt<" + std::to_string(moment) + ">";
  std::int64_t sum = 0;
  for (std::size_t i = 0; i < profile.samples.size(); ++i) {
    const std::uint32_t leaf = profile.stacks[profile.samples[i].stack].frame;
    const std::uint32_t name = kept.symbols.frames[leaf].function;
    const bool is_there = name < kept.symbols.functions.size() &&
                          kept.symbols.functions[name].name.find(function) != std::string::npos;
    if (is_there) sum += profile.Values(i)[column];
  }
  return sum;
}
std::int64_t LiveBytes(int moment) {
  if (!profiler->Flush().ok()) return -1;
  return LiveBytesOf(KeptProfiles::Take().back(), moment);
}
#define STROBE_TEST_EXPECT_LIVE(moment, expected)                                                \
  do {                                                                                           \
    const std::int64_t bytes = LiveBytes(moment);                                                \
    if (bytes != (expected)) {                                                                   \
      std::fprintf(stderr, "%s:%d: of %s, %lld bytes live, expected %lld\n", __FILE__, __LINE__, \
                   #moment, static_cast<long long>(bytes), static_cast<long long>(expected));    \
      _exit(1);                                                                                  \
    }                                                                                            \
  } while (false)

// Reaches the thread's next sampled point, which was chosen before the interval was known. Has the
// unwind tables built: before, the stack of a live block lacks the frames that the collector finds
// later.
void WarmUp() {
  std::free(MakeUnused(std::size_t{1} << 30));
  for (int i = 0; i < 2; ++i) {
    std::free(MakeAt<kBeforeMain>(0));
    STROBE_CHILD_CHECK(profiler->Flush().ok());
  }
}

// The last function that runs.
void CheckTheEnd() {
  const std::int64_t untaken = AllocationSampling::stats().untaken_objects;
  std::free(MakeAt<kLeak>(500));
  STROBE_CHILD_CHECK(AllocationSampling::stats().untaken_objects > untaken);
  // The program's exit has stopped the session, and exported what was live then.
  const auto kept = KeptProfiles::Take();
  STROBE_CHILD_CHECK(!kept.empty());
  STROBE_CHILD_CHECK(LiveBytesOf(kept.back(), kLeak) == kSize + 1009);
  std::puts("all is as it should be");
  std::fflush(stdout);
  _exit(0);
}

// Objects are constructed in the order of these numbers, and destroyed in the opposite one.
struct First {
  First() : block(MakeAt<kBeforeProfiler>(1000)) {
    if (std::atexit(&CheckTheEnd) != 0) _exit(1);
  }
  void* const block;
};
__attribute__((init_priority(201))) First first;

struct Second {
  Second() {
    ProfilerOptions options;
    options.sampling.cpu_frequency_hz = 0;
    options.threads.ring_bytes = 1 << 22;
    options.exporter.period_s = 600;
    profiler = new AllocationProfiler(options);
    STROBE_CHILD_CHECK(profiler->Start().ok());
    sampling = new AllocationSampling(*profiler, {.interval_bytes = 4096});
    STROBE_CHILD_CHECK(sampling->status().ok());
    WarmUp();
  }
};
__attribute__((init_priority(202))) Second second;

struct Third {
  Third() : block(MakeAt<kBeforeMain>(1001)) {}
  ~Third() {
    std::free(block);
    std::free(MakeAt<kStaticEnd>(1008));
  }
  void* const block;
};
__attribute__((init_priority(203))) Third third;

// The ends of threads, registered and not.
std::vector<void*> left_behind;
struct ThreadLocal {
  ~ThreadLocal() {
    std::free(block);
    left_behind.push_back(MakeAt<kThreadEnd>(1002));
  }
  void* block = nullptr;
};
thread_local ThreadLocal thread_local_object;

void AtKeyEnd(void* block) {
  std::free(block);
  left_behind.push_back(MakeAt<kKeyEnd>(1003));
}

void CheckThreadEnds() {
  pthread_key_t key{};
  STROBE_CHILD_CHECK(pthread_key_create(&key, &AtKeyEnd) == 0);
  for (const bool is_registered : {true, false}) {
    std::thread([&] {
      const auto body = [&] {
        thread_local_object.block = MakeAt<kThreadEnd>(77);
        pthread_setspecific(key, MakeAt<kKeyEnd>(78));
      };
      is_registered ? static_cast<void>(testing::RunRegistered(*profiler, "t", body)) : body();
    }).join();
  }
  STROBE_TEST_EXPECT_LIVE(kThreadEnd, 2 * (kSize + 1002));
  STROBE_TEST_EXPECT_LIVE(kKeyEnd, 2 * (kSize + 1003));
  for (void* const block : left_behind) std::free(block);
  STROBE_TEST_EXPECT_LIVE(kThreadEnd, 0);
  STROBE_TEST_EXPECT_LIVE(kKeyEnd, 0);
}

// A signal's handler, on the thread's own stack and on an alternate one.
std::array<char, 1 << 16> alternate_stack;
void* made_in_handler = nullptr;
void HandleSignal(int /*signal*/) { made_in_handler = MakeAt<kHandler>(1004); }

void CheckHandlers() {
  const stack_t stack{.ss_sp = alternate_stack.data(), .ss_flags = 0, .ss_size = 1 << 16};
  STROBE_CHILD_CHECK(sigaltstack(&stack, nullptr) == 0);
  for (const int flags : {0, SA_ONSTACK}) {
    struct sigaction action = {};
    action.sa_handler = &HandleSignal;
    action.sa_flags = flags;
    STROBE_CHILD_CHECK(sigaction(SIGUSR2, &action, nullptr) == 0);
    STROBE_CHILD_CHECK(raise(SIGUSR2) == 0);
    STROBE_TEST_EXPECT_LIVE(kHandler, kSize + 1004);
    std::free(made_in_handler);
    STROBE_TEST_EXPECT_LIVE(kHandler, 0);
  }
}

// A child has its parent's live heap, and a session of its own if it begins one.
void CheckForks() {
  void* const freed = MakeAt<kBeforeFork>(2005);
  void* const kept = MakeAt<kBeforeFork>(1005);
  const int status = testing::RunInChild([&] {
    const std::int64_t untaken = AllocationSampling::stats().untaken_bytes;
    std::free(freed);
    std::free(MakeAt<kChild>(1006));
    STROBE_CHILD_CHECK(AllocationSampling::stats().untaken_bytes == untaken + kSize + 1006);
    STROBE_CHILD_CHECK(profiler->Start().ok());
    const auto registration = profiler->RegisterThread("child");
    WarmUp();
    STROBE_TEST_EXPECT_LIVE(kBeforeFork, kSize + 1005);
    void* const own = MakeAt<kChild>(1007);
    std::thread([] { left_behind.push_back(MakeAt<kChild>(2007)); }).join();
    STROBE_TEST_EXPECT_LIVE(kChild, 2 * kSize + 1007 + 2007);
    std::free(own);
    std::free(kept);
    STROBE_TEST_EXPECT_LIVE(kBeforeFork, 0);
    STROBE_TEST_EXPECT_LIVE(kChild, kSize + 2007);
    STROBE_CHILD_CHECK(profiler->Stop().ok());
  });
  STROBE_CHILD_CHECK(status == 0);
  STROBE_TEST_EXPECT_LIVE(kBeforeFork, 2 * kSize + 2005 + 1005);
  STROBE_TEST_EXPECT_LIVE(kChild, 0);
  std::free(freed);
  std::free(kept);
  STROBE_TEST_EXPECT_LIVE(kBeforeFork, 0);
}

// What the profile's stacks have in a function of that name.
std::int64_t BytesThrough(const testing::KeptProfile& kept, const char* function) {
  const Profile& profile = kept.profile;
  const auto column = static_cast<std::size_t>(testing::ColumnOf(profile, "alloc_space"));
  std::int64_t sum = 0;
  for (std::size_t i = 0; i < profile.samples.size(); ++i) {
    for (std::uint32_t node = profile.samples[i].stack; node != 0;
         node = profile.stacks[node].parent) {
      const std::uint32_t name = kept.symbols.frames[profile.stacks[node].frame].function;
      if (name >= kept.symbols.functions.size() ||
          kept.symbols.functions[name].name.find(function) == std::string::npos)
        continue;
      sum += profile.Values(i)[column];
      break;
    }
  }
  return sum;
}

// What Strobe's own threads allocate is not the program's.
void CheckOwnThreads() {
  constexpr int kFlushes = 20;
  for (int i = 0; i < kFlushes; ++i) {
    STROBE_CHILD_CHECK(profiler->Flush().ok());
    for (const testing::KeptProfile& kept : KeptProfiles::Take())
      STROBE_CHILD_CHECK(BytesThrough(kept, "RunOnOwnThread") == 0);
  }
}

}  // namespace
}  // namespace strobe

int main() {
  using namespace strobe;
  STROBE_TEST_EXPECT_LIVE(kBeforeMain, kSize + 1001);
  strobe::testing::HoldKeptProfilesOverForks();
  {
    const auto registration = profiler->RegisterThread("main");
    CheckThreadEnds();
    CheckHandlers();
    CheckForks();
    CheckOwnThreads();
  }
  CheckHandlers();  // of a thread that is not registered
  std::free(first.block);
  STROBE_TEST_EXPECT_LIVE(kBeforeProfiler, 0);
  static void* leaked = nullptr;
  leaked = MakeAt<kLeak>(1009);
  asm volatile("" : : "r"(leaked));
  std::exit(0);
}
