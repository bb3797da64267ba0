#include "strobe/provider/process_sink.h"

#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#include "gtest/gtest.h"
#include "strobe/testing/latch.h"

namespace strobe::internal {
namespace {

constexpr auto kNothing = [] {};

// Keeps what was recorded, as a profiler does.
struct Kept {
  std::vector<SampledAmounts> amounts;
  bool is_taken = true;

  EventTarget target() {
    return {.record =
                [](void* self, const SampledAmounts& amounts, StackKeeper* /*keeper*/) {
                  static_cast<Kept*>(self)->amounts.push_back(amounts);
                  return static_cast<Kept*>(self)->is_taken;
                },
            .profiler = this};
  }
};

bool Record(ProcessSink& sink, const SampledAmounts& amounts) {
  return ProcessSink::Use(sink).Record(amounts);
}

TEST(ProcessSink, TakesEventsWhileItIsOpen) {
  ProcessSink sink;
  Kept kept;
  const EventTarget target = kept.target();
  EXPECT_FALSE(sink.is_open());
  EXPECT_FALSE(Record(sink, {1, 1}));
  ASSERT_TRUE(sink.Open(target, kNothing));
  EXPECT_TRUE(sink.is_open());
  EXPECT_TRUE(Record(sink, {2, 20}));
  sink.Close();
  EXPECT_FALSE(sink.is_open());
  EXPECT_FALSE(Record(sink, {3, 30}));
  EXPECT_EQ(kept.amounts, (std::vector<SampledAmounts>{{2, 20}}));
  EXPECT_EQ(sink.untaken(), SampledAmounts()) << "a closed sink counts nothing";
}

TEST(ProcessSink, IsOpenedByOneAtATime) {
  ProcessSink sink;
  Kept first;
  Kept second;
  const EventTarget first_target = first.target();
  const EventTarget second_target = second.target();
  int prepared = 0;
  const auto prepare = [&] {
    ++prepared;
    EXPECT_FALSE(sink.is_open());
  };
  ASSERT_TRUE(sink.Open(first_target, prepare));
  EXPECT_FALSE(sink.Open(second_target, prepare));
  EXPECT_EQ(prepared, 1);
  EXPECT_TRUE(Record(sink, {1, 1}));
  sink.Close();
  EXPECT_TRUE(sink.Open(second_target, prepare));
  EXPECT_EQ(prepared, 2);
  EXPECT_TRUE(Record(sink, {2, 2}));
  sink.Close();
  EXPECT_EQ(first.amounts, (std::vector<SampledAmounts>{{1, 1}}));
  EXPECT_EQ(second.amounts, (std::vector<SampledAmounts>{{2, 2}}));
}

TEST(ProcessSink, APauseKeepsTheTarget) {
  ProcessSink sink;
  Kept kept;
  const EventTarget target = kept.target();
  const auto change = [&] {
    EXPECT_FALSE(sink.is_open());
    EXPECT_FALSE(Record(sink, {1, 1}));
  };
  sink.Pause(change);
  EXPECT_FALSE(sink.is_open());
  ASSERT_TRUE(sink.Open(target, kNothing));
  sink.Pause(change);
  EXPECT_TRUE(Record(sink, {2, 2}));
  sink.Close();
  EXPECT_EQ(kept.amounts, (std::vector<SampledAmounts>{{2, 2}}));
}

TEST(ProcessSink, AddsUpWhatTheTargetDoesNotTake) {
  ProcessSink sink;
  Kept kept;
  kept.is_taken = false;
  const EventTarget target = kept.target();
  ASSERT_TRUE(sink.Open(target, kNothing));
  EXPECT_FALSE(Record(sink, {2, 20}));
  EXPECT_FALSE(Record(sink, {1, 5}));
  kept.is_taken = true;
  EXPECT_TRUE(Record(sink, {1, 7}));
  EXPECT_EQ(sink.untaken(), (SampledAmounts{.count = 3, .total = 25}));
  sink.Close();
  EXPECT_EQ(sink.untaken(), (SampledAmounts{.count = 3, .total = 25}));
  ASSERT_TRUE(sink.Open(target, kNothing));
  EXPECT_EQ(sink.untaken(), SampledAmounts());
  sink.Close();
}

// A thread in the middle of an event when the sink is closed.
struct Straggler {
  ProcessSink sink;
  testing::Latch has_begun{1};
  testing::Latch may_end{1};
  std::atomic<bool> has_ended{false};
  bool waits_for_close = false;
  const EventTarget target{
      .record =
          [](void* self, const SampledAmounts& /*amounts*/, StackKeeper* /*keeper*/) {
            auto& straggler = *static_cast<Straggler*>(self);
            straggler.has_begun.count_down();
            while (straggler.waits_for_close && straggler.sink.is_open()) std::this_thread::yield();
            if (!straggler.waits_for_close) straggler.may_end.wait();
            straggler.has_ended = true;
            return true;
          },
      .profiler = this};
};

TEST(ProcessSink, ClosesWhenNoThreadUsesTheTargetAnyMore) {
  Straggler straggler;
  straggler.waits_for_close = true;
  ASSERT_TRUE(straggler.sink.Open(straggler.target, kNothing));
  std::thread user([&] { EXPECT_TRUE(Record(straggler.sink, {1, 1})); });
  straggler.has_begun.wait();
  const auto begin = std::chrono::steady_clock::now();
  straggler.sink.Close();
  EXPECT_TRUE(straggler.has_ended ||
              std::chrono::steady_clock::now() - begin >= ProcessSink::kUsersWait);
  user.join();
}

TEST(ProcessSink, ClosesInTheEndWhateverAThreadDoes) {
  Straggler straggler;
  ASSERT_TRUE(straggler.sink.Open(straggler.target, kNothing));
  std::thread user([&] { EXPECT_TRUE(Record(straggler.sink, {1, 1})); });
  straggler.has_begun.wait();
  straggler.sink.Close();
  EXPECT_FALSE(straggler.has_ended);
  EXPECT_FALSE(Record(straggler.sink, {1, 1}));
  straggler.may_end.count_down();
  user.join();
}

}  // namespace
}  // namespace strobe::internal
