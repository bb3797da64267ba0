// Plug-ins that have each linked a copy of Strobe, in a program that has linked one, too: none may
// disturb another.
#include <dlfcn.h>
#include <signal.h>
#include <sys/resource.h>

#include <array>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "copy_plugin.h"
#include "gtest/gtest.h"
#include "kept_profiles.h"
#include "support/until_seen.h"

namespace strobe {
namespace {

using testing::BurnCpu;
using testing::CopyOfStrobe;
using testing::CpuBounds;
using testing::KeepingProfiler;
using testing::KeptProfile;
using testing::KeptProfiles;
using testing::RunRegistered;
using testing::SumByName;
using testing::ThreadCpuNs;
using testing::WorkUntil;

constexpr double kHz = 1000;
constexpr std::int64_t kWorkNs = 100'000'000;

// A plug-in, loaded.
class Plugin {
 public:
  explicit Plugin(const char* variable) {
    const char* const path = std::getenv(variable);
    handle_ = path == nullptr ? nullptr : dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (handle_ == nullptr) return;
    const auto make = reinterpret_cast<testing::MakeCopy>(dlsym(handle_, testing::kMakeCopy));
    if (make != nullptr) copy_.reset(make());
  }
  Plugin(const Plugin&) = delete;
  Plugin& operator=(const Plugin&) = delete;
  ~Plugin() {
    copy_.reset();
    if (handle_ != nullptr) dlclose(handle_);
  }
  [[nodiscard]] bool IsLoaded() const { return copy_ != nullptr; }
  CopyOfStrobe* operator->() const { return copy_.get(); }

 private:
  void* handle_ = nullptr;
  std::unique_ptr<CopyOfStrobe> copy_;
};

constexpr std::array<const char*, 3> kPlugins = {"STROBE_TEST_COPY_A", "STROBE_TEST_COPY_B",
                                                 "STROBE_TEST_COPY_C"};

std::vector<std::unique_ptr<Plugin>> LoadAll() {
  std::vector<std::unique_ptr<Plugin>> plugins;
  for (const char* variable : kPlugins) plugins.push_back(std::make_unique<Plugin>(variable));
  return plugins;
}

// Works until the copy, and the program's own profiler, have samples of a thread of that name.
void WorkUntilSampled(const Plugin& plugin, const char* name) {
  BurnCpu(kWorkNs);
  WorkUntil([&] { return plugin->Samples(name) > 0; },
            [&] {
              BurnCpu(kWorkNs / 10);
              EXPECT_TRUE(plugin->Flush());
            });
}
void WorkUntilSampled(KeepingProfiler& profiler, const char* name) {
  BurnCpu(kWorkNs);
  testing::WorkUntilKept(
      profiler, [&](const KeptProfile& kept) { return SumByName({kept}, "samples")[name] > 0; },
      [] { BurnCpu(kWorkNs / 10); });
}

// Registers the calling thread with the copy, works until it has been sampled, and ends that.
CpuBounds Work(const Plugin& plugin, const char* name) {
  const std::int64_t before_ns = ThreadCpuNs();
  plugin->Register(name);
  const std::int64_t begin_ns = ThreadCpuNs();
  WorkUntilSampled(plugin, name);
  const std::int64_t end_ns = ThreadCpuNs();
  plugin->Unregister();
  return {end_ns - begin_ns, ThreadCpuNs() - before_ns};
}

void ExpectAccounted(const Plugin& plugin, const char* name, const CpuBounds& bounds) {
  EXPECT_GE(plugin->CpuNs(name), bounds.low_ns);
  EXPECT_LE(plugin->CpuNs(name), bounds.high_ns);
}

void ExpectAccounted(const CpuBounds& bounds, const char* name) {
  const auto kept = KeptProfiles::Take();
  EXPECT_GE(SumByName(kept, "cpu")[name], bounds.low_ns);
  EXPECT_LE(SumByName(kept, "cpu")[name], bounds.high_ns);
}

// The signals of the three plug-ins and of the program; 0 takes the library's choice.
using Signals = std::array<int, 4>;
class Copies : public ::testing::TestWithParam<Signals> {
 protected:
  void SetUp() override {
    KeptProfiles::Take();
    for (const auto& plugin : plugins_) ASSERT_TRUE(plugin->IsLoaded()) << dlerror();
  }
  const std::vector<std::unique_ptr<Plugin>> plugins_ = LoadAll();
};

// Each has a thread of its own, and all have one in common.
TEST_P(Copies, ProfileAtOnce) {
  KeepingProfiler profiler(
      {.sampling = {
           .cpu_frequency_hz = kHz, .wall_frequency_hz = 50, .signal_number = GetParam()[3]}});
  for (std::size_t i = 0; i < 2; ++i) ASSERT_TRUE((*plugins_[i])->Start(GetParam()[i], kHz, 0));
  ASSERT_TRUE(profiler.Start().ok());
  ASSERT_TRUE((*plugins_[2])->Start(GetParam()[2], kHz, 50));
  std::array<CpuBounds, 4> own;
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < 3; ++i)
    threads.emplace_back([&, i] { own[i] = Work(*plugins_[i], "own"); });
  threads.emplace_back(
      [&] { own[3] = RunRegistered(profiler, "own", [&] { WorkUntilSampled(profiler, "own"); }); });
  for (std::thread& thread : threads) thread.join();
  CpuBounds common;
  std::thread([&] {
    const std::int64_t before_ns = ThreadCpuNs();
    auto registration = std::optional(profiler.RegisterThread("common"));
    for (const auto& plugin : plugins_) (*plugin)->Register("common");
    const std::int64_t begin_ns = ThreadCpuNs();
    for (const auto& plugin : plugins_) WorkUntilSampled(*plugin, "common");
    WorkUntilSampled(profiler, "common");
    common.low_ns = ThreadCpuNs() - begin_ns;
    for (const auto& plugin : plugins_) (*plugin)->Unregister();
    registration.reset();
    common.high_ns = ThreadCpuNs() - before_ns;
  }).join();
  for (const auto& plugin : plugins_) ASSERT_TRUE((*plugin)->Stop());
  ASSERT_TRUE(profiler.Stop().ok());
  for (std::size_t i = 0; i < 3; ++i) {
    SCOPED_TRACE(i);
    ExpectAccounted(*plugins_[i], "own", own[i]);
    ExpectAccounted(*plugins_[i], "common", common);
    EXPECT_EQ((*plugins_[i])->Diagnose().find("replaced"), std::string::npos);
  }
  EXPECT_EQ(profiler.Diagnose().find("replaced"), std::string::npos);
  EXPECT_EQ(profiler.stats().handler_replaced, 0u);
  const auto kept = KeptProfiles::Take();
  EXPECT_GE(SumByName(kept, "cpu")["own"], own[3].low_ns);
  EXPECT_LE(SumByName(kept, "cpu")["own"], own[3].high_ns);
  EXPECT_GE(SumByName(kept, "cpu")["common"], common.low_ns);
  EXPECT_LE(SumByName(kept, "cpu")["common"], common.high_ns);
}

TEST_P(Copies, ProfileInTurnsAndLeave) {
  for (const std::size_t turn : {0, 1, 2, 1, 0}) {
    SCOPED_TRACE(turn);
    const Plugin plugin(kPlugins[turn]);
    ASSERT_TRUE(plugin->Start(GetParam()[turn], kHz, 0));
    const CpuBounds bounds = Work(plugin, "turn");
    ASSERT_TRUE(plugin->Stop());
    ExpectAccounted(plugin, "turn", bounds);
  }
  KeepingProfiler profiler({.sampling = {.cpu_frequency_hz = kHz, .signal_number = GetParam()[3]}});
  ASSERT_TRUE(profiler.Start().ok());
  const CpuBounds bounds =
      RunRegistered(profiler, "last", [&] { WorkUntilSampled(profiler, "last"); });
  ASSERT_TRUE(profiler.Stop().ok());
  ExpectAccounted(bounds, "last");
}

constexpr std::array<const char*, 3> kSignalNames = {"Default", "Same", "Mixed"};
INSTANTIATE_TEST_SUITE_P(Signals, Copies,
                         ::testing::Values(Signals{0, 0, 0, 0},
                                           Signals{SIGPROF, SIGPROF, SIGPROF, SIGPROF},
                                           Signals{SIGUSR1, SIGUSR2, SIGUSR1, SIGVTALRM}),
                         [](const auto& info) { return kSignalNames[info.index]; });

// A request without its payload may be for any copy.
TEST(CopiesAtTheLimit, AreServedWithoutPayloads) {
  if (testing::kIsThreadSanitizer)
    GTEST_SKIP() << "ThreadSanitizer keeps one pending signal of a number, with what it said";
  const auto plugins = LoadAll();
  for (const auto& plugin : plugins) ASSERT_TRUE(plugin->IsLoaded()) << dlerror();
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_SIGPENDING, &before), 0);
  const rlimit none{.rlim_cur = 0, .rlim_max = before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_SIGPENDING, &none), 0);
  for (const auto& plugin : plugins) ASSERT_TRUE((*plugin)->Start(SIGALRM, kHz, 0));
  std::array<CpuBounds, 3> own;
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < 3; ++i) {
    threads.emplace_back([&, i] {
      (*plugins[(i + 1) % 3])->Register("other");
      own[i] = Work(*plugins[i], "own");
      WorkUntilSampled(*plugins[(i + 1) % 3], "other");
      (*plugins[(i + 1) % 3])->Unregister();
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const auto& plugin : plugins) ASSERT_TRUE((*plugin)->Stop());
  ASSERT_EQ(setrlimit(RLIMIT_SIGPENDING, &before), 0);
  for (std::size_t i = 0; i < 3; ++i) {
    SCOPED_TRACE(i);
    ExpectAccounted(*plugins[i], "own", own[i]);
  }
}

}  // namespace
}  // namespace strobe
