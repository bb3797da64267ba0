// A program that measures allocations and locks answers each name with them.
#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "get.h"
#include "gtest/gtest.h"
#include "strobe/allocations/allocation_sampling.h"
#include "strobe/http/pull_server.h"
#include "strobe/locks/contention_sampling.h"
#include "strobe/locks/profiled.h"
#include "strobe/testing/pprof_reader.h"

namespace strobe {
namespace {

struct AllTraits : DefaultTraits {
  using Providers = ProviderList<CpuTimeProvider, WallTimeProvider, OffCpuTimeProvider,
                                 AllocationProvider, ContentionProvider>;
};

[[gnu::noinline]] void AllocateAll(std::vector<std::unique_ptr<char[]>>& live) {
  if (live.empty()) live.emplace_back(new char[1 << 20]);
  std::vector<std::unique_ptr<char[]>> freed;
  for (int i = 0; i < 100; ++i) freed.emplace_back(new char[4096]);
}

Profiled<std::mutex> contended;

[[gnu::noinline]] void WaitForContended() { const std::lock_guard lock(contended); }

// Lets another thread wait for the lock.
void MakeWait() {
  std::unique_lock lock(contended);
  std::atomic<bool> is_there{false};
  std::thread waiting([&] {
    is_there = true;
    WaitForContended();
  });
  while (!is_there) {
  }
  std::this_thread::sleep_for(std::chrono::milliseconds(2));
  lock.unlock();
  waiting.join();
}

// Asks for the profile while this thread works for all of them, and returns the sum of its last
// column over stacks with the function; -1 if the answer is no profile.
[[gnu::noinline]] std::int64_t AskFor(const PullServer& server, const std::string& name,
                                      const char* function) {
  std::atomic<bool> is_done{false};
  std::string answer;
  std::thread client([&] {
    answer = testing::Get(server.url(), "/debug/pprof/" + name + "?seconds=1");
    is_done = true;
  });
  std::vector<std::unique_ptr<char[]>> live;
  while (!is_done) {
    AllocateAll(live);
    MakeWait();
  }
  client.join();
  if (!answer.starts_with("HTTP/1.1 200 OK\r\n")) return -1;
  const auto profile = testing::ReadPprof(answer.substr(answer.find("\r\n\r\n") + 4));
  if (!profile) return -1;
  std::int64_t sum = 0;
  for (const auto& sample : profile->samples) {
    for (const std::string& frame : profile->Stack(sample)) {
      if (frame.find(function) != std::string::npos) {
        sum += sample.values.back();
        break;
      }
    }
  }
  return sum;
}

TEST(PullProvidersTest, EachNameHasItsData) {
  BasicProfiler<AllTraits> profiler(
      {.sampling = {.wall_frequency_hz = 50},
       .exporter = {.directory = ::testing::TempDir() + "pull_providers_test"}});
  const Registration registration = profiler.RegisterThread("test");
  const BasicScopedProfiler session(profiler);
  ASSERT_TRUE(session.status().ok()) << session.status();
  const AllocationSampling allocations(profiler, {.interval_bytes = 1});
  ASSERT_TRUE(allocations.status().ok()) << allocations.status();
  const ContentionSampling contentions(profiler, {.interval_ns = 1});
  ASSERT_TRUE(contentions.status().ok()) << contentions.status();
  PullServer server(profiler, {.port = 0});
  ASSERT_TRUE(server.Start().ok());
  for (const auto& [name, function] :
       std::vector<std::pair<const char*, const char*>>{{"profile", "AskFor"},
                                                        {"wall", "AskFor"},
                                                        {"allocs", "AllocateAll"},
                                                        {"heap", "AllocateAll"},
                                                        {"mutex", "WaitForContended"},
                                                        {"block", "WaitForContended"}})
    EXPECT_GT(AskFor(server, name, function), 0) << name;
}

}  // namespace
}  // namespace strobe
