#include "ui/terminal.h"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <termios.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "strobe/platform/linux/descriptor.h"

namespace strobe::internal {
namespace {

bool IsOf(std::uint32_t process, uid_t user) {
  struct stat status {};
  return stat(absl::StrCat("/proc/", process).c_str(), &status) == 0 && status.st_uid == user;
}

class GrowingFile final : public ByteSource {
 public:
  explicit GrowingFile(Descriptor file) : file_(std::move(file)) {}

  [[nodiscard]] bool ReadAt(std::uint64_t offset, std::span<std::byte> out) const override {
    while (!out.empty()) {
      const ssize_t count = pread(file_.get(), out.data(), out.size(), static_cast<off_t>(offset));
      if (count <= 0) return false;
      offset += static_cast<std::uint64_t>(count);
      out = out.subspan(static_cast<std::size_t>(count));
    }
    return true;
  }
  [[nodiscard]] std::uint64_t size() const override {
    struct stat status {};
    return fstat(file_.get(), &status) == 0 ? static_cast<std::uint64_t>(status.st_size) : 0;
  }

 private:
  Descriptor file_;
};

}  // namespace

Terminal FindTerminal() {
  const char* const kind = std::getenv("TERM");
  const bool is_dumb = kind == nullptr || std::string_view(kind) == "dumb";
  Terminal terminal;
  terminal.is_output = isatty(STDOUT_FILENO) == 1;
  terminal.shows_output = terminal.is_output && !is_dumb && std::getenv("NO_COLOR") == nullptr;
  terminal.shows_errors = isatty(STDERR_FILENO) == 1;
  winsize size{};
  if (terminal.is_output && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0)
    terminal.columns = size.ws_col;
  return terminal;
}

// Such a program takes each key at once, not line by line.
bool IsTerminalTaken() {
  termios settings{};
  return tcgetattr(STDERR_FILENO, &settings) == 0 && (settings.c_lflag & ICANON) == 0;
}

std::vector<std::string> ProgramArguments(int argc, char** argv) {
  return argc < 1 ? std::vector<std::string>() : std::vector<std::string>(argv + 1, argv + argc);
}

void UseBinaryStreams() {}

std::unique_ptr<ByteSource> OpenFileOf(std::uint32_t process, const std::string& path) {
  Descriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  struct stat status {};
  if (!file.is_open() || fstat(file.get(), &status) != 0 || !S_ISREG(status.st_mode) ||
      (status.st_uid != 0 && status.st_uid != geteuid() && !IsOf(process, status.st_uid)))
    return nullptr;
  return std::make_unique<GrowingFile>(std::move(file));
}

}  // namespace strobe::internal
