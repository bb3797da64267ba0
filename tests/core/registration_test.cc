#include "strobe/core/registration.h"

#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "runtime/manual_traits.h"
#include "strobe/own_parts.h"
#include "strobe/testing/latch.h"

namespace strobe {
namespace {

using ::testing::HasSubstr;
using TestProfiler = BasicProfiler<testing::ManualTraits>;

static_assert(!std::is_copy_constructible_v<Registration> &&
              !std::is_copy_assignable_v<Registration>);
static_assert(std::is_nothrow_move_constructible_v<Registration>);

std::uint64_t Registered(TestProfiler& profiler) { return profiler.stats().threads_registered; }

class RegistrationTest : public ::testing::Test {
 protected:
  void SetUp() override { testing::ManualPlatform::Reset(); }
};

TEST_F(RegistrationTest, LastsAsLongAsTheObject) {
  TestProfiler profiler;
  {
    const Registration registration = profiler.RegisterThread("thread");
    EXPECT_TRUE(registration.status().ok()) << registration.status();
    EXPECT_EQ(Registered(profiler), 1u);
  }
  EXPECT_EQ(Registered(profiler), 0u);
}

TEST_F(RegistrationTest, MovesWithTheObject) {
  TestProfiler profiler;
  std::optional<Registration> outer;
  {
    Registration inner = profiler.RegisterThread("thread");
    outer = std::move(inner);
    EXPECT_FALSE(inner.status().ok());  // NOLINT(bugprone-use-after-move): that is the question
  }
  EXPECT_TRUE(outer->status().ok());
  EXPECT_EQ(Registered(profiler), 1u);
  Registration other = std::move(*outer);
  outer.reset();
  EXPECT_EQ(Registered(profiler), 1u);
  other = Registration();
  EXPECT_EQ(Registered(profiler), 0u);
}

TEST_F(RegistrationTest, AssigningEndsWhatWasThere) {
  TestProfiler one;
  TestProfiler other;
  Registration registration = one.RegisterThread("thread");
  registration = other.RegisterThread("thread");
  EXPECT_EQ(Registered(one), 0u);
  EXPECT_EQ(Registered(other), 1u);
}

TEST_F(RegistrationTest, NothingIsRegisteredByDefault) {
  const Registration registration;
  EXPECT_EQ(registration.status().code(), absl::StatusCode::kCancelled);
}

TEST_F(RegistrationTest, ASecondRegistrationOfAThreadIsAnErrorAndTheFirstGoesOn) {
  TestProfiler profiler;
  const Registration first = profiler.RegisterThread("first");
  {
    const Registration second = profiler.RegisterThread("second");
    EXPECT_EQ(second.status().code(), absl::StatusCode::kAlreadyExists);
  }
  EXPECT_EQ(Registered(profiler), 1u);
  EXPECT_EQ(profiler.stats().threads_refused, 1u);
}

TEST_F(RegistrationTest, TwoProfilersMayRegisterOneThreadInAnyOrder) {
  TestProfiler one;
  TestProfiler other;
  std::optional<Registration> first = one.RegisterThread("thread");
  std::optional<Registration> second = other.RegisterThread("thread");
  EXPECT_TRUE(first->status().ok());
  EXPECT_TRUE(second->status().ok());
  first.reset();
  EXPECT_EQ(Registered(other), 1u);
  first = one.RegisterThread("thread");
  EXPECT_TRUE(first->status().ok());
  second.reset();
  first.reset();
}

TEST_F(RegistrationTest, BeyondTheLimitTheObjectSaysSoAndDoesNothing) {
  TestProfiler profiler({.threads = {.max_threads = 1}});
  const Registration registration = profiler.RegisterThread("first");
  std::thread([&] {
    const Registration refused = profiler.RegisterThread("second");
    EXPECT_EQ(refused.status().code(), absl::StatusCode::kResourceExhausted);
    EXPECT_THAT(std::string(refused.status().message()), HasSubstr("threads.max_threads"));
  }).join();
  EXPECT_EQ(Registered(profiler), 1u);
}

TEST_F(RegistrationTest, OutlivesItsProfiler) {
  auto profiler = std::make_unique<TestProfiler>();
  ASSERT_TRUE(profiler->Start().ok());
  std::optional<Registration> registration = profiler->RegisterThread("thread");
  testing::Latch is_registered(1);
  testing::Latch may_end(1);
  std::thread other([&] {
    const Registration late = profiler->RegisterThread("other");
    is_registered.count_down();
    may_end.wait();
  });
  is_registered.wait();
  profiler.reset();
  const auto lines = testing::ManualPlatform::With([](auto& state) { return state.lines; });
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_THAT(lines[0], HasSubstr("destroyed before 2 thread(s)"));
  EXPECT_TRUE(registration->status().ok());
  // The last one takes along what is left of the profiler.
  registration.reset();
  may_end.count_down();
  other.join();
  std::vector<std::unique_ptr<TestProfiler>> profilers;
  for (std::size_t i = 0; i < internal::kMaxArenas; ++i) {
    profilers.push_back(std::make_unique<TestProfiler>());
    EXPECT_TRUE(profilers.back()->Start().ok()) << "a core is kept without need";
  }
}

TEST_F(RegistrationTest, EndingOnAnotherThreadLeavesTheThreadRegistered) {
  static bool is_first = true;  // of this test in the process
  TestProfiler profiler;
  for (int i = 0; i < 2; ++i) {
    std::thread([&] {
      std::optional<Registration> registration = profiler.RegisterThread("thread");
      std::thread([&] { registration.reset(); }).join();
    }).join();
  }
  EXPECT_EQ(Registered(profiler), 2u);
  const auto lines = testing::ManualPlatform::With([](auto& state) { return state.lines; });
  ASSERT_EQ(lines.size(), std::exchange(is_first, false) ? 1u : 0u) << "once in a process";
  for (const std::string& line : lines) EXPECT_THAT(line, HasSubstr("ended on another thread"));
  EXPECT_TRUE(profiler.Start().ok() && profiler.Stop().ok());
}

}  // namespace
}  // namespace strobe
