#include "screen.h"

#include <errno.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <utility>

#include "absl/strings/str_cat.h"

namespace strobe::internal {
namespace {

// The other screen, no cursor, and no line goes on in the next.
constexpr std::string_view kEnter = "\033[?1049h\033[?25l\033[?7l";
constexpr std::string_view kLeave = "\033[?7h\033[?25h\033[?1049l";
constexpr std::string_view kHome = "\033[H";
constexpr std::string_view kClearLine = "\033[K";  // behind the cursor
constexpr std::string_view kClearBelow = "\033[J";
// Of a terminal that does not know its size.
constexpr LiveView::Size kUsualSize{.rows = 24, .columns = 80};
// Keys that are pasted come in parts.
constexpr std::size_t kMostKeys = 256;

}  // namespace

bool Screen::CanDrawOn(int output) {
  const char* const kind = std::getenv("TERM");
  return kind != nullptr && *kind != '\0' && std::string_view(kind) != "dumb" &&
         isatty(output) == 1;
}

Screen::Screen(int input, int output)
    : input_(input), output_(output), has_keys_(tcgetattr(input, &before_) == 0) {
  Enter();
}

Screen::~Screen() { Leave(); }

void Screen::Enter() {
  if (std::exchange(is_entered_, true)) return;
  if (has_keys_ && tcgetattr(input_, &before_) == 0) {
    termios raw = before_;
    raw.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);
    raw.c_cc[VMIN] = 1;
    raw.c_cc[VTIME] = 0;
    tcsetattr(input_, TCSANOW, &raw);
  }
  static_cast<void>(Write(kEnter));
}

// Keys that were pressed for the table are none for what reads the terminal next.
void Screen::Leave() {
  if (!std::exchange(is_entered_, false)) return;
  static_cast<void>(Write(kLeave));
  if (has_keys_) tcsetattr(input_, TCSAFLUSH, &before_);
}

LiveView::Size Screen::size() const {
  winsize size{};
  if (ioctl(output_, TIOCGWINSZ, &size) != 0 || size.ws_row == 0 || size.ws_col == 0)
    return kUsualSize;
  return {.rows = size.ws_row, .columns = size.ws_col};
}

bool Screen::Draw(const std::vector<std::string>& lines) const {
  std::string bytes(kHome);
  for (std::size_t i = 0; i < lines.size(); ++i)
    absl::StrAppend(&bytes, i == 0 ? "" : "\r\n", lines[i], absl::string_view(kClearLine.data()));
  return Write(bytes.append(kClearBelow));
}

std::optional<std::string> Screen::ReadKeys() const {
  std::array<char, kMostKeys> bytes{};
  const ssize_t count = read(input_, bytes.data(), bytes.size());
  if (count < 0 && errno == EINTR) return std::string();
  if (count <= 0) return std::nullopt;
  return std::string(bytes.data(), static_cast<std::size_t>(count));
}

bool Screen::Write(std::string_view bytes) const {
  while (!bytes.empty()) {
    const ssize_t count = write(output_, bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(count));
  }
  return true;
}

}  // namespace strobe::internal
