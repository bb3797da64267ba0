#include "../../../../src/cli/record/linux/perf_session.h"

#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdint>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace strobe::internal {
namespace {

std::vector<PerfRequest> Requests(const RecordOptions& options) {
  auto requests = RequestsOf(options);
  EXPECT_TRUE(requests.ok()) << requests.status();
  return *std::move(requests);
}

RecordOptions OfThisProcess() {
  RecordOptions options;
  options.processes = {static_cast<std::uint32_t>(getpid())};
  options.ring_kib = 64;
  return options;
}

TEST(PerfSessionTest, UnknownEventsAreNone) {
  RecordOptions options;
  options.events = "no-such-event";
  EXPECT_FALSE(RequestsOf(options).ok());
}

TEST(PerfSessionTest, SignalsStopIt) {
  const sigset_t signals = SignalsThatStop({SIGWINCH});
  for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGWINCH})
    EXPECT_EQ(sigismember(&signals, number), 1) << number;
  EXPECT_EQ(sigismember(&signals, SIGUSR1), 0);
}

TEST(PerfSessionTest, IsOfTheProcessByItsName) {
  const RecordOptions options = OfThisProcess();
  const PerfSession session(options, Requests(options));
  EXPECT_FALSE(session.TitleOfRunning().program.empty());
  EXPECT_EQ(session.TitleOfRunning().process, static_cast<std::uint64_t>(getpid()));
}

TEST(PerfSessionTest, WhatDoesNotRunIsAnError) {
  RecordOptions options = OfThisProcess();
  options.processes = {0x3FFFFFFF};
  EXPECT_FALSE(PerfSession(options, Requests(options)).AttachRunning().ok());
  RecordOptions group;
  group.is_machine = true;
  group.cgroup = "no such group";
  EXPECT_TRUE(absl::IsNotFound(PerfSession(group, Requests(group)).AttachRunning()));
}

TEST(PerfSessionTest, EndsPeriodsUntilItIsOver) {
  const RecordOptions options = OfThisProcess();
  PerfSession session(options, Requests(options));
  const absl::Status attached = session.AttachRunning();
  if (!attached.ok()) GTEST_SKIP() << attached.message();
  int periods = 0;
  double last_s = 0;
  const absl::Status status =
      session.Record({}, {.is_over = [&] { return periods == 3; },
                          .end_round = [&](double seconds) { last_s = seconds; },
                          .period = std::chrono::milliseconds(1),
                          .end_period =
                              [&] {
                                ++periods;
                                return session.recorder().EndPeriod().status();
                              }});
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_EQ(periods, 3);
  EXPECT_GT(last_s, 0);
}

TEST(PerfSessionTest, EndsWithItsDuration) {
  RecordOptions options = OfThisProcess();
  options.duration_s = 0.001;
  PerfSession session(options, Requests(options));
  const absl::Status attached = session.AttachRunning();
  if (!attached.ok()) GTEST_SKIP() << attached.message();
  EXPECT_TRUE(session.Record({}, {.is_over = [] { return false; }}).ok());
}

}  // namespace
}  // namespace strobe::internal
