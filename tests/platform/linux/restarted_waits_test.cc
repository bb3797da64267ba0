#include "../../../src/platform/linux/signals/restarted_waits.h"

#include <sys/syscall.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "gtest/gtest.h"

namespace strobe::internal {
namespace {

#if defined(__x86_64__)
// A page of code in which `mov eax, NUMBER; syscall` ends at `end`, and a thread that goes on there
// with this result.
class RestartWaitTest : public ::testing::Test {
 protected:
  // True if the thread makes the call again.
  bool Restarts(int number, std::int64_t result, std::size_t end = 100,
                std::array<std::uint8_t, 2> last = {0x0F, 0x05}) {
    code_.fill(0x90);
    std::array<std::uint8_t, 7> call{0xB8, 0, 0, 0, 0, last[0], last[1]};
    std::memcpy(call.data() + 1, &number, sizeof(number));
    const std::size_t there = std::min(end, call.size());
    std::copy(call.end() - static_cast<std::ptrdiff_t>(there), call.end(),
              code_.begin() + static_cast<std::ptrdiff_t>(end - there));
    ucontext_t context{};
    auto& registers = context.uc_mcontext.gregs;
    const auto pc = static_cast<greg_t>(reinterpret_cast<std::uintptr_t>(code_.data()) + end);
    registers[REG_RIP] = pc;
    registers[REG_RAX] = result;
    registers[REG_RSP] = 0x1234;
    RestartWait(context);
    const bool restarts = registers[REG_RIP] != pc;
    EXPECT_EQ(registers[REG_RIP], restarts ? pc - 2 : pc);
    EXPECT_EQ(registers[REG_RAX], restarts ? number : result);
    EXPECT_EQ(registers[REG_RSP], 0x1234);
    return restarts;
  }

  alignas(4096) std::array<std::uint8_t, 4096> code_{};
};

TEST_F(RestartWaitTest, WaitsThatWereInterruptedAreMadeAgain) {
  for (const int number : {SYS_poll, SYS_epoll_wait, SYS_nanosleep, SYS_clock_nanosleep, SYS_futex,
                           SYS_read, SYS_recvfrom, SYS_accept4, SYS_rt_sigtimedwait})
    EXPECT_TRUE(Restarts(number, -EINTR)) << number;
}

TEST_F(RestartWaitTest, OtherResultsStay) {
  for (const std::int64_t result : {0, -EAGAIN, EINTR, 1}) EXPECT_FALSE(Restarts(SYS_poll, result));
}

TEST_F(RestartWaitTest, CallsThatWaitForASignalEnd) {
  EXPECT_FALSE(Restarts(SYS_pause, -EINTR));
  EXPECT_FALSE(Restarts(SYS_rt_sigsuspend, -EINTR));
  EXPECT_FALSE(Restarts(SYS_getpid, -EINTR));
  EXPECT_FALSE(Restarts(-1, -EINTR));
  EXPECT_FALSE(Restarts(1'000'000, -EINTR));
}

TEST_F(RestartWaitTest, OtherCodeStays) {
  EXPECT_FALSE(Restarts(SYS_poll, -EINTR, 100, {0x90, 0x90}));
}

TEST_F(RestartWaitTest, CodeBeforeThePageIsNotRead) {
  for (std::size_t end = 0; end < 7; ++end) EXPECT_FALSE(Restarts(SYS_poll, -EINTR, end)) << end;
  EXPECT_TRUE(Restarts(SYS_poll, -EINTR, 7));
}
#else
TEST(RestartWaitTest, ChangesNothing) {
  ucontext_t context{};
  const ucontext_t before = context;
  RestartWait(context);
  EXPECT_EQ(std::memcmp(&context.uc_mcontext, &before.uc_mcontext, sizeof(context.uc_mcontext)), 0);
}
#endif

}  // namespace
}  // namespace strobe::internal
