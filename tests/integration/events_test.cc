// Samples that the program's own threads bring, while timers and other threads interrupt them.
#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "gtest/gtest.h"
#include "kept_profiles.h"
#include "strobe/base/signal_safe.h"
#include "strobe/testing/fakes/archetypes.h"
#include "strobe/testing/profile_check.h"
#include "support/until_seen.h"

namespace strobe {
namespace {

using Messages = testing::ArchetypeEventProvider;
using testing::KeptProfile;
using testing::KeptProfiles;
using testing::RunRegistered;
using testing::SumByName;
using testing::WaitUntil;
using testing::WorkUntil;

struct NoMessages : Messages {
  using Messages::Messages;
  [[nodiscard]] bool enabled() const { return false; }
};

struct MessageTraits : testing::KeepingTraits {
  using Providers = ProviderList<CpuTimeProvider, Messages, WallTimeProvider>;
};
struct NoMessageTraits : testing::KeepingTraits {
  using Providers = ProviderList<CpuTimeProvider, NoMessages>;
};
using MessageProfiler = BasicProfiler<MessageTraits>;

struct Sent {
  std::int64_t messages = 0;
  std::int64_t bytes = 0;
  Sent& operator+=(const Sent& more) {
    messages += more.messages;
    bytes += more.bytes;
    return *this;
  }
};

// Sends messages of 1 to 7 bytes for that long; what was counted of them.
Sent SendFor(MessageProfiler& profiler, std::int64_t cpu_ns) {
  Sent sent;
  const std::int64_t end_ns = testing::ThreadCpuNs() + cpu_ns;
  for (std::int64_t i = 0; testing::ThreadCpuNs() < end_ns; ++i) {
    if (!profiler.CaptureHere<Messages>({1, 1 + i % 7})) continue;
    ++sent.messages;
    sent.bytes += 1 + i % 7;
  }
  return sent;
}

// The same, and on until more than `messages` have been counted.
Sent SendMoreThan(MessageProfiler& profiler, std::int64_t messages, std::int64_t cpu_ns) {
  Sent sent = SendFor(profiler, cpu_ns);
  WorkUntil([&] { return sent.messages > messages; },
            [&] { sent += SendFor(profiler, 1'000'000); });
  return sent;
}

TEST(Events, AreConservedUnderAStormOfSignals) {
  KeptProfiles::Take();
  MessageProfiler profiler({.sampling = {.cpu_frequency_hz = 10000, .wall_frequency_hz = 1000},
                            .exporter = {.period_s = 0.05}});
  ASSERT_EQ(profiler.Start(), absl::OkStatus());
  constexpr int kThreads = 3;
  std::array<Sent, kThreads> sent{};
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&, i] {
      RunRegistered(profiler, "t" + std::to_string(i),
                    [&] { sent[i] = SendMoreThan(profiler, 100, 200'000'000); });
    });
  }
  for (std::thread& thread : threads) thread.join();
  ASSERT_EQ(profiler.Stop(), absl::OkStatus());
  const std::vector<KeptProfile> kept = KeptProfiles::Take();
  for (const KeptProfile& one : kept) EXPECT_EQ(testing::CheckProfile(one.profile), "");
  auto messages = SumByName(kept, "events");
  auto bytes = SumByName(kept, "sent");
  auto cpu_ns = SumByName(kept, "cpu");
  for (int i = 0; i < kThreads; ++i) {
    const std::string name = "t" + std::to_string(i);
    EXPECT_EQ(messages[name], sent[i].messages);
    EXPECT_EQ(bytes[name], sent[i].bytes);
    EXPECT_GE(cpu_ns[name], 200'000'000);
  }
}

// Sessions begin and end in the middle of events: what a call says was counted is in a profile.
TEST(Events, OfASessionThatEndsMeanwhileAreCountedOrRefused) {
  KeptProfiles::Take();
  MessageProfiler profiler;
  std::atomic<bool> is_over{false};
  Sent sent;
  std::atomic<std::int64_t> messages{0};
  std::thread sender([&] {
    RunRegistered(profiler, "sender", [&] {
      while (!is_over) {
        sent += SendFor(profiler, 100'000);
        messages = sent.messages;
      }
    });
  });
  int sessions = 0;
  WorkUntil([&] { return sessions >= 20 && messages > 0; },
            [&] {
              EXPECT_EQ(profiler.Start(), absl::OkStatus());
              testing::BurnCpu(5'000'000);
              EXPECT_EQ(profiler.Stop(), absl::OkStatus());
              ++sessions;
            });
  is_over = true;
  sender.join();
  const std::vector<KeptProfile> kept = KeptProfiles::Take();
  EXPECT_EQ(SumByName(kept, "events")["sender"], sent.messages);
  EXPECT_EQ(SumByName(kept, "sent")["sender"], sent.bytes);
}

constexpr const char* kUnregistered = "[unregistered thread]";

// More threads than there are channels for them.
TEST(Events, OfThreadsThatAreNotRegisteredAreConserved) {
  KeptProfiles::Take();
  MessageProfiler profiler({.sampling = {.cpu_frequency_hz = 10000, .wall_frequency_hz = 1000},
                            .exporter = {.period_s = 0.05}});
  ASSERT_EQ(profiler.Start(), absl::OkStatus());
  constexpr int kThreads = 12;
  std::array<Sent, kThreads> sent{};
  std::vector<std::thread> threads;
  for (Sent& own : sent)
    threads.emplace_back([&profiler, &own] { own = SendMoreThan(profiler, 10, 30'000'000); });
  for (std::thread& thread : threads) thread.join();
  ASSERT_EQ(profiler.Stop(), absl::OkStatus());
  const std::vector<KeptProfile> kept = KeptProfiles::Take();
  for (const KeptProfile& one : kept) EXPECT_EQ(testing::CheckProfile(one.profile), "");
  Sent all;
  for (const Sent& own : sent) all += own;
  EXPECT_EQ(SumByName(kept, "events"),
            (std::map<std::string, std::int64_t>{{kUnregistered, all.messages}}));
  EXPECT_EQ(SumByName(kept, "sent")[kUnregistered], all.bytes);
  EXPECT_EQ(SumByName(kept, "cpu")[kUnregistered], 0);
  EXPECT_EQ(profiler.stats().threads_registered, 0U);
}

// The limit of memory is the least that there is.
TEST(Events, WhoseTimesAreTooManyKeepTheirAmounts) {
  KeptProfiles::Take();
  MessageProfiler profiler({.sampling = {.cpu_frequency_hz = 0, .timestamps = true},
                            .collector = {.drain_period_ms = 1, .memory_bytes = 1 << 20}});
  ASSERT_EQ(profiler.Start(), absl::OkStatus());
  Sent sent;
  std::thread([&] {
    RunRegistered(profiler, "sender", [&] {
      WorkUntil([&] { return profiler.stats().moments_dropped > 0; },
                [&] { sent += SendFor(profiler, 1'000'000); });
    });
  }).join();
  ASSERT_EQ(profiler.Stop(), absl::OkStatus());
  const std::vector<KeptProfile> kept = KeptProfiles::Take();
  ASSERT_EQ(kept.size(), 1U);
  const Profile& profile = kept[0].profile;
  EXPECT_EQ(testing::CheckProfile(profile), "");
  EXPECT_GT(profile.moments.size(), 1000U);
  EXPECT_LT(profile.moments.size(), (1U << 20) / MomentTable::kShareOfLimit / 32);
  EXPECT_EQ(profile.stats.moments_dropped, profiler.stats().moments_dropped);
  EXPECT_EQ(profile.moments.size() + profile.stats.moments_dropped, profile.stats.samples);
  EXPECT_EQ(SumByName(kept, "events")["sender"], sent.messages);
  EXPECT_EQ(SumByName(kept, "sent")["sender"], sent.bytes);
}

[[gnu::noinline]] bool SendByHook(MessageProfiler& profiler, std::uint32_t skip) {
  const bool is_counted = profiler.CaptureHere<Messages>({1, 8}, skip);
  asm volatile("" ::: "memory");  // no tail call
  return is_counted;
}
[[gnu::noinline]] bool Send(MessageProfiler& profiler, std::uint32_t skip) {
  const bool is_counted = SendByHook(profiler, skip);
  asm volatile("" ::: "memory");
  return is_counted;
}

// The sums of messages by the stack's leaf.
std::map<Address, std::int64_t> MessagesByLeaf(const std::vector<KeptProfile>& kept) {
  std::map<Address, std::int64_t> sums;
  for (const KeptProfile& one : kept) {
    const auto column = static_cast<std::size_t>(testing::ColumnOf(one.profile, "events"));
    for (std::size_t i = 0; i < one.profile.samples.size(); ++i) {
      const std::vector<Frame> frames = testing::FramesOf(one.profile, one.profile.samples[i]);
      if (const std::int64_t messages = one.profile.Values(i)[column]; messages != 0)
        sums[frames.front().address] += messages;
    }
  }
  return sums;
}

// A thread that calls this brings kMessagesByFunction.
void SendWithAndWithoutHook(MessageProfiler& profiler) {
  for (const std::uint32_t skip : {0, 1, 0, 1, 1, 1000000}) EXPECT_TRUE(Send(profiler, skip));
}
using ByFunction = std::map<std::string, std::int64_t>;
const ByFunction kMessagesByFunction{{"caller", 3}, {"hook", 2}, {"root", 1}};

ByFunction MessagesByFunction(const std::vector<KeptProfile>& kept) {
  ByFunction sums;
  for (const auto& [address, messages] : MessagesByLeaf(kept)) {
    // The function that begins nearest below.
    const Address from_hook = address - reinterpret_cast<Address>(&SendByHook);
    const Address from_caller = address - reinterpret_cast<Address>(&Send);
    const char* const name = from_hook < from_caller ? "hook" : "caller";
    sums[std::min(from_hook, from_caller) < 1024 ? name : "root"] += messages;
  }
  return sums;
}

TEST(Events, AreShownWithoutTheFramesOfTheirHook) {
  KeptProfiles::Take();
  MessageProfiler profiler({.sampling = {.cpu_frequency_hz = 0}});
  ASSERT_EQ(profiler.Start(), absl::OkStatus());
  RunRegistered(profiler, "main", [&] { SendWithAndWithoutHook(profiler); });
  ASSERT_EQ(profiler.Stop(), absl::OkStatus());
  EXPECT_EQ(MessagesByFunction(KeptProfiles::Take()), kMessagesByFunction);
}

TEST(Events, OfThreadsThatAreNotRegisteredHaveTheirStacks) {
  KeptProfiles::Take();
  MessageProfiler profiler({.sampling = {.cpu_frequency_hz = 0}});
  ASSERT_EQ(profiler.Start(), absl::OkStatus());
  // The first samples have the unwind tables built, and add their amounts to the next ones.
  WaitUntil([&] {
    std::thread([&] { SendWithAndWithoutHook(profiler); }).join();
    EXPECT_EQ(profiler.Flush(), absl::OkStatus());
    const std::vector<KeptProfile> kept = KeptProfiles::Take();
    for (const KeptProfile& one : kept) {
      for (std::size_t i = 0; i < one.profile.samples.size(); ++i)
        EXPECT_EQ(one.profile.Labels(i).Text(kThreadNameLabel), kUnregistered);
    }
    return MessagesByFunction(kept) == kMessagesByFunction;
  });
  ASSERT_EQ(profiler.Stop(), absl::OkStatus());
}

TEST(Events, AreRefusedWhereNothingCountsThem) {
  MessageProfiler profiler;
  BasicProfiler<NoMessageTraits> other;
  const auto registration = profiler.RegisterThread("main");
  const auto other_registration = other.RegisterThread("main");
  EXPECT_FALSE(profiler.CaptureHere<Messages>({1, 1})) << "no session";
  ASSERT_EQ(profiler.Start(), absl::OkStatus());
  ASSERT_EQ(other.Start(), absl::OkStatus());
  EXPECT_TRUE(profiler.CaptureHere<Messages>({1, 1}));
  EXPECT_FALSE(other.CaptureHere<NoMessages>({1, 1})) << "the options do not enable the provider";
  std::thread([&] { EXPECT_TRUE(profiler.CaptureHere<Messages>({1, 1})); }).join();
  ASSERT_EQ(profiler.Stop(), absl::OkStatus());
  ASSERT_EQ(other.Stop(), absl::OkStatus());
  EXPECT_FALSE(profiler.CaptureHere<Messages>({1, 1})) << "the session is over";
  std::thread([&] { EXPECT_FALSE(profiler.CaptureHere<Messages>({1, 1})); }).join();
}

}  // namespace
}  // namespace strobe
