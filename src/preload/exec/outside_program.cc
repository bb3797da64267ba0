#include "outside_program.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "../../process/linux/attach_request.h"
#include "../../process/linux/call_filters.h"
#include "../../process/linux/program_file.h"
#include "strobe/core/settings/known_variables.h"

namespace strobe::internal {
namespace {

constexpr std::string_view kUsualPath = "/bin:/usr/bin";  // exec…p's, without the variable

// What is called here must not end a thread that is cancelled: exec would not.
class KeptState {
 public:
  KeptState() : error_(errno) { pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state_); }
  ~KeptState() {
    pthread_setcancelstate(state_, nullptr);
    errno = error_;
  }
  KeptState(const KeptState&) = delete;
  KeptState& operator=(const KeptState&) = delete;

 private:
  const int error_;
  int state_ = 0;
};

// The value; empty if the environment does not have the variable.
std::string_view ValueIn(char* const* environment, std::string_view name) {
  if (environment == nullptr) return {};
  for (; *environment != nullptr; ++environment) {
    const std::string_view variable(*environment);
    if (variable.starts_with(name) && variable.substr(name.size()).starts_with('='))
      return variable.substr(name.size() + 1);
  }
  return {};
}

// A filter that has come since the recording began may end the process at a call that is ours.
bool HasFurtherFilter(char* const* environment) {
  const std::string_view known = ValueIn(environment, kRecordingFiltersVariable);
  int before = 0;
  std::from_chars(known.data(), known.data() + known.size(), before);
  return CountCallFilters() != before;
}

// A connection to the command; -1 if it does not listen, or too many others ask.
int Connect(std::string_view folder) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  folder = folder.substr(0, folder.rfind('/') + 1);
  if (folder.size() + kAttachSocket.size() >= sizeof(address.sun_path)) return -1;
  std::ranges::copy(kAttachSocket, std::ranges::copy(folder, address.sun_path).out);
  const int connection = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (connection < 0) return -1;
  if (connect(connection, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0)
    return connection;
  close(connection);
  return -1;
}

std::int64_t NowMs() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return std::int64_t{now.tv_sec} * 1000 + now.tv_nsec / 1'000'000;
}

// Whatever signals come meanwhile.
void AwaitAnswer(int connection) {
  const std::int64_t end_ms = NowMs() + OutsideProgram::kLongestAnswerMs;
  pollfd polled{.fd = connection, .events = POLLIN, .revents = 0};
  for (std::int64_t left_ms = OutsideProgram::kLongestAnswerMs; left_ms > 0;
       left_ms = end_ms - NowMs()) {
    if (poll(&polled, 1, static_cast<int>(left_ms)) >= 0 || errno != EINTR) break;
  }
  // What is not read would make the connection's end an error.
  char answer = 0;
  static_cast<void>(recv(connection, &answer, sizeof(answer), 0));
}

bool Send(int connection, const AttachRequest& request) {
  return send(connection, &request, sizeof(request), MSG_NOSIGNAL) == sizeof(request);
}

}  // namespace

ExecutedPath::ExecutedPath(const char* name) noexcept : path_(name) {
  if (std::strchr(name, '/') != nullptr) return;
  const int saved_errno = errno;
  const char* const variable = std::getenv("PATH");
  std::string_view folders = variable != nullptr ? std::string_view(variable) : kUsualPath;
  const std::string_view file(name);
  while (path_ == name) {
    const std::string_view folder = folders.substr(0, folders.find(':'));
    if (folder.size() + file.size() + 2 <= found_.size()) {
      char* end = std::ranges::copy(folder, found_.begin()).out;
      if (!folder.empty()) *end++ = '/';
      *std::ranges::copy(file, end).out = '\0';
      struct stat status {};
      const bool is_file = stat(found_.data(), &status) == 0 && S_ISREG(status.st_mode);
      if (is_file && access(found_.data(), X_OK) == 0) path_ = found_.data();
    }
    if (folder.size() == folders.size()) break;
    folders.remove_prefix(folder.size() + 1);
  }
  errno = saved_errno;
}

OutsideProgram::OutsideProgram(const char* path, char* const* environment) noexcept {
  const std::string_view folder = ValueIn(environment, "STROBE_RECORDING");
  const std::string_view preload = ValueIn(environment, "LD_PRELOAD");
  // Who takes the library away wants no recording.
  if (folder.empty() || preload.find(kPreloadLibrary) == std::string_view::npos) return;
  const KeptState kept;
  if (HasFurtherFilter(environment)) return;
  const ProgramFile program = JudgeProgramFile(path);
  if (!program.LoadsNoLibrary()) return;
  folder_ = folder;
  has_other_rights_ = program.has_other_rights;
}

OutsideProgram::~OutsideProgram() {
  if (connection_ < 0) return;
  const KeptState kept;
  shutdown(connection_, SHUT_RDWR);  // a fork of another thread may have inherited it
  close(connection_);
}

void OutsideProgram::AskBeforeExec() noexcept {
  if (folder_.empty()) return;
  const KeptState kept;
  connection_ = Connect(folder_);
  if (connection_ < 0) return;
  const AttachRequest request{
      .id = gettid(), .time = has_other_rights_ ? AttachTime::kAfterExec : AttachTime::kAtExec};
  if (!Send(connection_, request) || has_other_rights_) return;
  AwaitAnswer(connection_);
}

void OutsideProgram::SayExecFailed() noexcept {
  if (connection_ < 0) return;
  const KeptState kept;
  static_cast<void>(send(connection_, "", 1, MSG_NOSIGNAL));
}

void OutsideProgram::AskAfterSpawn(pid_t child) noexcept {
  if (folder_.empty()) return;
  const KeptState kept;
  connection_ = Connect(folder_);
  if (connection_ >= 0) Send(connection_, {.id = child, .time = AttachTime::kNow});
}

}  // namespace strobe::internal
