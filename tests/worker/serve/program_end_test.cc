#include "worker/linux/serve/program_end.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>

namespace strobe::internal {
namespace {

constexpr std::int64_t kLongNs = 60'000'000'000;

// A child that runs `body`.
struct Child {
  explicit Child(const std::function<void()>& body) : id(fork()) {
    if (id == 0) {
      body();
      _exit(0);
    }
    process = static_cast<int>(syscall(SYS_pidfd_open, id, 0));
  }
  ~Child() { close(process); }
  [[nodiscard]] std::string End(std::int64_t timeout_ns = kLongNs) const {
    return EndOfProcess(process, static_cast<std::uint64_t>(id), timeout_ns);
  }
  void Wait() const { waitpid(id, nullptr, 0); }

  pid_t id;
  int process = -1;
};

TEST(EndOfProcess, TheStatusIsThereUntilTheParentHasWaited) {
  const Child exits([] { _exit(7); });
  EXPECT_EQ(exits.End(), "exited with status 7");
  exits.Wait();
  // Linux 6.15 tells it afterwards, too.
  EXPECT_THAT(exits.End(), ::testing::AnyOf("exited with status 7", "ended"));
  const Child dies([] { raise(SIGKILL); });
  EXPECT_EQ(dies.End(), "killed by signal 9");
  dies.Wait();
  EXPECT_THAT(dies.End(), ::testing::AnyOf("killed by signal 9", "ended"));
}

TEST(EndOfProcess, AProcessThatLivesHasOnlyClosedItsConnection) {
  const Child lives([] { pause(); });
  EXPECT_EQ(lives.End(1'000'000), "closed its connection");
  kill(lives.id, SIGTERM);
  EXPECT_EQ(lives.End(), "killed by signal 15");
  lives.Wait();
}

}  // namespace
}  // namespace strobe::internal
