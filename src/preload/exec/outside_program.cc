#include "outside_program.h"

#include <errno.h>
#include <pthread.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "../../process/linux/attach_request.h"
#include "../../process/linux/program_file.h"

namespace strobe::internal {
namespace {

constexpr std::string_view kLibraryName = "/libstrobe-preload";
constexpr std::string_view kUsualPath = "/bin:/usr/bin";  // exec…p's, without the variable
// A wait that signals interrupt is taken up again so often.
constexpr int kMaxInterrupts = 8;

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

// A connection to the command; -1 if it does not listen, or does not accept in time.
int Connect(std::string_view folder) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  folder = folder.substr(0, folder.rfind('/') + 1);
  if (folder.size() + kAttachSocket.size() >= sizeof(address.sun_path)) return -1;
  std::ranges::copy(kAttachSocket, std::ranges::copy(folder, address.sun_path).out);
  const int connection = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
  if (connection < 0) return -1;
  const timeval longest{.tv_sec = 0, .tv_usec = 1000 * OutsideProgram::kLongestAnswerMs};
  setsockopt(connection, SOL_SOCKET, SO_RCVTIMEO, &longest, sizeof(longest));
  setsockopt(connection, SOL_SOCKET, SO_SNDTIMEO, &longest, sizeof(longest));
  if (connect(connection, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0)
    return connection;
  close(connection);
  return -1;
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
      if (access(found_.data(), X_OK) == 0) path_ = found_.data();
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
  if (folder.empty() || preload.find(kLibraryName) == std::string_view::npos) return;
  const KeptState kept;
  const ProgramFile program = JudgeProgramFile(path);
  if (!program.LoadsNoLibrary()) return;
  folder_ = folder;
  has_other_rights_ = program.has_other_rights;
}

OutsideProgram::~OutsideProgram() {
  if (connection_ < 0) return;
  const KeptState kept;
  close(connection_);
}

void OutsideProgram::AskBeforeExec() noexcept {
  if (folder_.empty()) return;
  const KeptState kept;
  connection_ = Connect(folder_);
  if (connection_ < 0) return;
  const AttachRequest request{
      .id = has_other_rights_ ? getpid() : gettid(),
      .time = has_other_rights_ ? AttachTime::kAfterwards : AttachTime::kAtExec};
  if (!Send(connection_, request) || has_other_rights_) return;
  char answer = 0;
  for (int i = 0; i < kMaxInterrupts; ++i) {
    if (recv(connection_, &answer, sizeof(answer), 0) >= 0 || errno != EINTR) break;
  }
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
  if (connection_ >= 0) Send(connection_, {.id = child, .time = AttachTime::kAfterwards});
}

}  // namespace strobe::internal
