#include "../../../../src/cli/live/linux/screen.h"

#include <fcntl.h>
#include <pty.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "strobe/platform/linux/descriptor.h"

namespace strobe::internal {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr int kNoTerminal = -1;

class ScreenTest : public ::testing::Test {
 protected:
  ScreenTest() {
    int controller = -1;
    int terminal = -1;
    winsize size{};
    size.ws_row = 7;
    size.ws_col = 33;
    EXPECT_EQ(openpty(&controller, &terminal, nullptr, nullptr, &size), 0);
    controller_ = Descriptor(controller);
    terminal_ = Descriptor(terminal);
  }

  // What was written since the last call.
  std::string Seen() {
    std::array<char, 4096> bytes{};
    const ssize_t count = read(controller_.get(), bytes.data(), bytes.size());
    return std::string(bytes.data(), static_cast<std::size_t>(count > 0 ? count : 0));
  }
  [[nodiscard]] tcflag_t Mode() const {
    termios settings{};
    EXPECT_EQ(tcgetattr(terminal_.get(), &settings), 0);
    return settings.c_lflag;
  }

  Descriptor controller_, terminal_;
};

TEST_F(ScreenTest, GivesTheTerminalBackAsItWas) {
  const tcflag_t before = Mode();
  {
    const Screen screen(terminal_.get(), terminal_.get());
    EXPECT_EQ(Mode() & (ICANON | ECHO), 0u);
    EXPECT_NE(Mode() & ISIG, 0u) << "Ctrl-C stays a signal";
    EXPECT_THAT(Seen(), HasSubstr("\033[?1049h"));
  }
  EXPECT_EQ(Mode(), before);
  EXPECT_THAT(Seen(), EndsWith("\033[?1049l"));
}

TEST_F(ScreenTest, IsLeftAndEnteredAgain) {
  const tcflag_t before = Mode();
  Screen screen(terminal_.get(), terminal_.get());
  screen.Leave();
  screen.Leave();
  EXPECT_EQ(Mode(), before);
  screen.Enter();
  screen.Enter();
  EXPECT_NE(Mode(), before);
}

TEST_F(ScreenTest, DrawsLinesOverThoseBefore) {
  const Screen screen(terminal_.get(), terminal_.get());
  Seen();
  EXPECT_TRUE(screen.Draw({"one", "two"}));
  EXPECT_EQ(Seen(), "\033[Hone\033[K\r\r\ntwo\033[K\033[J");
}

TEST_F(ScreenTest, KnowsItsSize) {
  const Screen screen(terminal_.get(), terminal_.get());
  EXPECT_EQ(screen.size().rows, 7u);
  EXPECT_EQ(screen.size().columns, 33u);
}

TEST_F(ScreenTest, ReadsKeysAtOnce) {
  const Screen screen(terminal_.get(), terminal_.get());
  ASSERT_EQ(write(controller_.get(), "s/", 2), 2);
  EXPECT_EQ(screen.ReadKeys(), "s/");
}

TEST_F(ScreenTest, NeedsNoKeys) {
  const Screen screen(kNoTerminal, terminal_.get());
  EXPECT_EQ(screen.keys_descriptor(), -1);
  EXPECT_THAT(Seen(), StartsWith("\033[?1049h"));
}

TEST_F(ScreenTest, SaysWhenTheTerminalIsGone) {
  const Screen screen(terminal_.get(), terminal_.get());
  controller_.Close();
  EXPECT_EQ(screen.ReadKeys(), std::nullopt);
  EXPECT_FALSE(screen.Draw({"one"}));
}

TEST_F(ScreenTest, IsDrawnWhereTheCursorCanBeMoved) {
  const char* const kind = std::getenv("TERM");
  const std::string before = kind == nullptr ? "" : kind;
  setenv("TERM", "xterm", 1);
  EXPECT_TRUE(Screen::CanDrawOn(terminal_.get()));
  EXPECT_FALSE(Screen::CanDrawOn(kNoTerminal));
  setenv("TERM", "dumb", 1);
  EXPECT_FALSE(Screen::CanDrawOn(terminal_.get()));
  setenv("TERM", before.c_str(), 1);
}

}  // namespace
}  // namespace strobe::internal
