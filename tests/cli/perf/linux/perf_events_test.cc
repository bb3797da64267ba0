#include "../../../../src/cli/perf/linux/perf_events.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstddef>
#include <utility>

#include "../../../../src/cli/perf/linux/perf_request.h"
#include "gtest/gtest.h"

namespace strobe::internal {
namespace {

PerfEvents TaskClockEvents() {
  auto requests = ParsePerfRequests("task-clock", "/sys/kernel/tracing");
  EXPECT_TRUE(requests.ok()) << requests.status();
  return PerfEvents({.requests = *std::move(requests), .ring_bytes = std::size_t{1} << 16});
}

class WaitingChild {
 public:
  WaitingChild() {
    while (id_ == 0) pause();
  }
  ~WaitingChild() { End(); }
  void End() {
    if (id_ <= 0) return;
    kill(id_, SIGKILL);
    waitpid(std::exchange(id_, 0), nullptr, 0);
  }
  [[nodiscard]] int id() const { return id_; }

 private:
  pid_t id_ = fork();
};

TEST(PerfEventsTest, TheIdsOfEventsAreKnownUntilTheirRecordsAreTaken) {
  PerfEvents events = TaskClockEvents();
  const absl::Status status = events.Add({.scope = PerfTarget::Scope::kThread,
                                          .id = gettid(),
                                          .name = "the test",
                                          .begin = PerfTarget::Begin::kNever});
  if (!status.ok()) GTEST_SKIP() << status.message();
  const std::size_t of_rings = events.header().events_by_id.size();
  WaitingChild ends;
  WaitingChild is_removed;
  ASSERT_TRUE(events.Add({.id = ends.id(), .name = "a child"}).ok());
  ASSERT_TRUE(events.Add({.id = is_removed.id(), .name = "a child"}).ok());
  EXPECT_EQ(events.header().events_by_id.size(), 3 * of_rings) << "each CPU has one";
  const std::uint64_t before = PerfEvents::Now();
  ends.End();
  events.CloseEnded();
  EXPECT_TRUE(events.Remove(is_removed.id()));
  events.ForgetClosed(before);
  EXPECT_EQ(events.header().events_by_id.size(), 3 * of_rings) << "records may be left";
  events.ForgetClosed(PerfEvents::Now());
  EXPECT_EQ(events.header().events_by_id.size(), of_rings);
}

TEST(PerfEventsTest, AThreadThatHasExecutedHasTheEventsOfItsProcess) {
  PerfEvents events = TaskClockEvents();
  const absl::Status status = events.Add({.scope = PerfTarget::Scope::kThread,
                                          .id = gettid(),
                                          .name = "the test",
                                          .begin = PerfTarget::Begin::kNever});
  if (!status.ok()) GTEST_SKIP() << status.message();
  const WaitingChild child;
  ASSERT_TRUE(events.Add({.id = child.id(), .name = "a child"}).ok());
  events.Rename(child.id(), 1);
  EXPECT_FALSE(events.Remove(child.id()));
  EXPECT_TRUE(events.Remove(1));
}

}  // namespace
}  // namespace strobe::internal
