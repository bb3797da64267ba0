// Programs that do one thing all the time which a profiler might trip over: allocate, throw, load
// and unload code.
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "gtest/gtest.h"
#include "kept_profiles.h"
#include "strobe/scoped_labels.h"
#include "support/until_seen.h"

namespace strobe {
namespace {

using testing::CpuBounds;
using testing::KeptProfile;
using testing::KeptProfiles;
using testing::RunRegistered;
using testing::SumByName;
using testing::ThreadCpuNs;
using testing::WaitUntil;
using NamedProfiler = BasicProfiler<testing::NamedKeepingTraits>;

constexpr std::int64_t kStormNs = 300'000'000;

class Storms : public ::testing::Test {
 protected:
  void SetUp() override {
    KeptProfiles::Take();
    ASSERT_TRUE(profiler_.Start().ok());
  }

  // Runs body() on several registered threads until each has used that much CPU time and been
  // sampled, and holds the profile to their clocks.
  template <class Body>
  void RunStorm(Body body) {
    std::vector<CpuBounds> bounds(3);
    std::vector<std::thread> threads;
    for (std::size_t i = 0; i < bounds.size(); ++i) {
      threads.emplace_back([&, i] {
        bounds[i] = RunRegistered(profiler_, std::to_string(i), [&] {
          const std::int64_t end_ns = ThreadCpuNs() + kStormNs;
          for (std::uint64_t round = i; ThreadCpuNs() < end_ns || !is_done_.load(); ++round)
            body(round);
        });
      });
    }
    WaitUntil([&] {
      EXPECT_TRUE(profiler_.Flush().ok());
      return HaveSamples(bounds.size());
    });
    is_done_ = true;
    for (std::thread& thread : threads) thread.join();
    ASSERT_TRUE(profiler_.Stop().ok());
    const auto kept = KeptProfiles::Take();
    auto cpu_ns = SumByName(kept, "cpu");
    for (std::size_t i = 0; i < bounds.size(); ++i) {
      EXPECT_GE(cpu_ns[std::to_string(i)], bounds[i].low_ns);
      EXPECT_LE(cpu_ns[std::to_string(i)], bounds[i].high_ns);
    }
  }

  // Whether each of so many threads, which are named by their numbers, has been sampled.
  static bool HaveSamples(std::size_t threads) {
    std::set<std::string> sampled;
    KeptProfiles::HasProfile([&](const KeptProfile& kept) {
      for (const auto& [name, samples] : SumByName({kept}, "samples")) {
        if (samples > 0) sampled.insert(name);
      }
      return false;
    });
    return sampled.size() == threads;
  }

  std::atomic<bool> is_done_{false};

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

std::atomic<std::int64_t> plugin_work_end_ns{0};
bool IsWorkOver() { return ThreadCpuNs() >= plugin_work_end_ns.load(); }

// The files and names of plugins' code at the leaves of the samples with that label.
std::set<std::string> LeavesInPlugins(const KeptProfile& kept, const std::string& letter) {
  std::set<std::string> names;
  const Profile& profile = kept.profile;
  for (std::size_t i = 0; i < profile.samples.size(); ++i) {
    if (profile.Labels(i).Text("plugin") != letter) continue;
    const std::uint32_t frame = profile.stacks[profile.samples[i].stack].frame;
    if (profile.frames[frame].module >= profile.modules.size()) continue;
    const std::string& path = profile.modules[profile.frames[frame].module].path;
    const std::size_t file = path.find("strobe_test_plugin_");
    if (file == std::string::npos) continue;
    const std::uint32_t function = kept.symbols.frames.at(frame).function;
    names.insert(
        path.substr(file, std::strlen("strobe_test_plugin_A")) + ": " +
        (function == FrameSymbols::kNone ? "no name" : kept.symbols.functions[function].name));
  }
  return names;
}

// The collector learns of loading and unloading when it drains. A sample of a plugin's work has the
// names of that plugin, whatever was at the place before.
TEST_F(Storms, ReloadAtTheSameAddress) {
  constexpr int kRounds = 5;
  bool was_same_address = false;
  RunRegistered(profiler_, "loads", [&] {
    std::uintptr_t first_address = 0;
    for (int round = 0; round < kRounds; ++round) {
      for (const std::string letter : {"A", "B"}) {
        KeptProfiles::Take();
        const std::string file = "strobe_test_plugin_" + letter;
        const std::string spins = file + ": Plugin" + letter + "Spins";
        {
          const Plugin plugin(("STROBE_TEST_PLUGIN_" + letter).c_str());
          ASSERT_TRUE(plugin) << letter << ": " << testing::Library::Error();
          was_same_address |= first_address == plugin.address();
          if (first_address == 0) first_address = plugin.address();
          ASSERT_TRUE(profiler_.Flush().ok());
          const ScopedLabels labels({{"plugin", letter}});
          testing::WorkUntilKept(
              profiler_,
              [&](const KeptProfile& kept) {
                return LeavesInPlugins(kept, letter).contains(spins);
              },
              [&] {
                plugin_work_end_ns = ThreadCpuNs() + 10'000'000;
                plugin.Run(&IsWorkOver);
              });
        }
        ASSERT_TRUE(profiler_.Flush().ok());
        for (const KeptProfile& kept : KeptProfiles::Take()) {
          for (const std::string& leaf : LeavesInPlugins(kept, letter))
            EXPECT_TRUE(leaf == spins || leaf == file + ": PluginWork") << leaf;
        }
      }
    }
  });
  ASSERT_TRUE(profiler_.Stop().ok());
  if (!was_same_address) std::puts("the loader gave every plugin a place of its own");
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
