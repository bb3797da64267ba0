// Programs that do one thing all the time which a profiler might trip over: allocate, throw, load
// and unload code.
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "gtest/gtest.h"
#include "kept_profiles.h"

namespace strobe {
namespace {

using testing::BurnCpu;
using testing::BurnUntilSampled;
using testing::CpuBounds;
using testing::KeptProfile;
using testing::KeptProfiles;
using testing::RunRegistered;
using testing::SumByName;
using testing::ThreadCpuNs;
using NamedProfiler = BasicProfiler<testing::NamedKeepingTraits>;

constexpr std::int64_t kStormNs = 300'000'000;

class Storms : public ::testing::Test {
 protected:
  void SetUp() override {
    KeptProfiles::Take();
    ASSERT_TRUE(profiler_.Start().ok());
  }

  // Runs body() on several registered threads until each has used that much CPU time, and holds the
  // profile to their clocks.
  template <class Body>
  void RunStorm(Body body) {
    std::vector<CpuBounds> bounds(3);
    std::vector<std::thread> threads;
    for (std::size_t i = 0; i < bounds.size(); ++i) {
      threads.emplace_back([&, i] {
        bounds[i] = RunRegistered(profiler_, std::to_string(i), [&] {
          const std::int64_t end_ns = ThreadCpuNs() + kStormNs;
          for (std::uint64_t round = i; ThreadCpuNs() < end_ns; ++round) body(round);
          BurnUntilSampled(0);
        });
      });
    }
    for (std::thread& thread : threads) thread.join();
    ASSERT_TRUE(profiler_.Stop().ok());
    const auto kept = KeptProfiles::Take();
    auto cpu_ns = SumByName(kept, "cpu");
    auto samples = SumByName(kept, "samples");
    for (std::size_t i = 0; i < bounds.size(); ++i) {
      EXPECT_GE(cpu_ns[std::to_string(i)], bounds[i].low_ns);
      EXPECT_LE(cpu_ns[std::to_string(i)], bounds[i].high_ns);
      EXPECT_GT(samples[std::to_string(i)], 0);
    }
  }

  NamedProfiler profiler_{
      ProfilerOptions{.sampling = {.cpu_frequency_hz = 1000, .wall_frequency_hz = 100}}};
};

TEST_F(Storms, Malloc) {
  RunStorm([](std::uint64_t round) {
    std::vector<std::unique_ptr<std::string>> blocks;
    for (std::uint64_t i = 0; i < 200; ++i) {
      blocks.push_back(std::make_unique<std::string>((round * 31 + i * 977) % 20'000, 'x'));
      if (i % 3 == 0) blocks[i / 2].reset();
    }
    void* memory = std::malloc(100);
    for (std::size_t bytes = 200; bytes < 1U << 18; bytes *= 2) {
      void* larger = std::realloc(memory, bytes);
      ASSERT_NE(larger, nullptr);
      memory = larger;
    }
    std::free(memory);
  });
}

struct Guard {
  explicit Guard(int& depth) : depth_(depth) { ++depth_; }
  ~Guard() { --depth_; }
  int& depth_;
};

[[gnu::noinline]] void ThrowFrom(int levels, int& depth) {
  const Guard guard(depth);
  if (levels == 0) throw std::runtime_error("storm");
  ThrowFrom(levels - 1, depth);
  asm volatile("");
}

TEST_F(Storms, Exceptions) {
  RunStorm([](std::uint64_t round) {
    int depth = 0;
    bool was_caught = false;
    try {
      ThrowFrom(static_cast<int>(round % 40), depth);
    } catch (const std::runtime_error& error) {
      was_caught = std::string(error.what()) == "storm";
    }
    ASSERT_TRUE(was_caught);
    ASSERT_EQ(depth, 0);
  });
}

// A plugin that is loaded for as long as the object lives.
class Plugin {
 public:
  explicit Plugin(const char* variable)
      : library_(std::getenv(variable) != nullptr ? std::getenv(variable) : "no plugin is named") {
    if (library_) work_ = reinterpret_cast<Work>(library_.Symbol("PluginWork"));
  }
  explicit operator bool() const { return work_ != nullptr; }
  // Works in the plugin's own function, whose name is the plugin's, until done() is true.
  void Run(bool (*done)()) const { work_(done); }
  [[nodiscard]] std::uintptr_t address() const { return reinterpret_cast<std::uintptr_t>(work_); }

 private:
  using Work = void (*)(bool (*done)());
  testing::Library library_;
  Work work_ = nullptr;
};

int walks_wanted = 0;
bool HaveEnoughWalks() { return testing::WalksOfThisThread() >= walks_wanted; }

// The samples of each function of the plugins, and of code in them that has no name.
std::map<std::string, std::int64_t> SamplesInPlugins(const std::vector<KeptProfile>& kept) {
  std::map<std::string, std::int64_t> counts;
  for (const KeptProfile& one : kept) {
    for (std::size_t i = 0; i < one.profile.samples.size(); ++i) {
      const std::uint32_t frame = one.profile.stacks[one.profile.samples[i].stack].frame;
      if (frame >= one.symbols.frames.size() ||
          one.symbols.frames[frame].function == FrameSymbols::kNone)
        continue;
      const FunctionSymbol& function = one.symbols.functions[one.symbols.frames[frame].function];
      if (function.name.find("lugin") != std::string::npos)
        counts[function.name] += one.profile.Values(i)[0];
    }
  }
  return counts;
}

TEST_F(Storms, ReloadAtTheSameAddress) {
  constexpr int kRounds = 5;
  constexpr int kWalks = 10;
  bool was_same_address = false;
  RunRegistered(profiler_, "loads", [&] {
    std::uintptr_t first_address = 0;
    for (int round = 0; round < kRounds; ++round) {
      for (const char* variable : {"STROBE_TEST_PLUGIN_A", "STROBE_TEST_PLUGIN_B"}) {
        {
          const Plugin plugin(variable);
          ASSERT_TRUE(plugin) << variable << ": " << testing::Library::Error();
          was_same_address |= first_address == plugin.address();
          if (first_address == 0) first_address = plugin.address();
          // The collector learns of loading and unloading when it drains.
          ASSERT_TRUE(profiler_.Flush().ok());
          walks_wanted = testing::WalksOfThisThread() + kWalks;
          plugin.Run(&HaveEnoughWalks);
        }
        ASSERT_TRUE(profiler_.Flush().ok());
      }
    }
  });
  ASSERT_TRUE(profiler_.Stop().ok());
  auto counts = SamplesInPlugins(KeptProfiles::Take());
  if (!was_same_address) std::puts("the loader gave every plugin a place of its own");
  // The check whether there are enough walks is the test's own code: some of them end there.
  EXPECT_GT(counts["PluginASpins"], kRounds);
  EXPECT_GT(counts["PluginBSpins"], kRounds);
  for (const auto& [name, count] : counts) {
    EXPECT_TRUE(name == "PluginASpins" || name == "PluginBSpins" || name == "PluginWork")
        << count << " samples in " << name;
  }
}

TEST_F(Storms, Dlopen) {
  if (testing::kIsThreadSanitizer)
    GTEST_SKIP() << "ThreadSanitizer does not see the loader's lock, and hands out signals when "
                    "the interrupted code may be gone";
  std::atomic<int> failures{0};
  RunStorm([&](std::uint64_t round) {
    const Plugin plugin(round % 2 == 0 ? "STROBE_TEST_PLUGIN_A" : "STROBE_TEST_PLUGIN_B");
    if (!plugin) {
      ++failures;
      return;
    }
    plugin.Run([] { return true; });
  });
  EXPECT_EQ(failures, 0);
  EXPECT_GT(profiler_.stats().module_refreshes, 1U);
}

}  // namespace
}  // namespace strobe
