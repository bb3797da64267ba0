#include "outside_recording.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <filesystem>
#include <functional>
#include <future>
#include <mutex>
#include <utility>
#include <vector>

#include "../../../platform/linux/files/few_files.h"
#include "../../../process/linux/attach_request.h"
#include "absl/strings/str_cat.h"
#include "perf/linux/file_shares.h"
#include "perf/proc_files.h"
#include "perf_session.h"
#include "strobe/platform/linux/descriptor.h"
#include "strobe/platform/linux/linux_platform.h"
#include "strobe/worker/program/local_worker.h"

namespace strobe::internal {
namespace {

constexpr const char* kOutside = "a program that loads no library";
constexpr std::chrono::milliseconds kForever(-1);

// Processes that ask and are not answered yet. Those beyond it execute at once.
constexpr int kMaxWaiting = 1024;

// Not open if the system refuses it.
Descriptor ListenIn(const std::string& folder) {
  // The folder's path may be longer than an address has room for; that of the file is short.
  const Descriptor directory(open(folder.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  const std::string path =
      absl::StrCat("/proc/self/fd/", directory.get(), "/", std::string(kAttachSocket));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  path.copy(address.sun_path, sizeof(address.sun_path) - 1);
  Descriptor listener(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!directory.is_open() || !listener.is_open() ||
      bind(listener.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0 ||
      listen(listener.get(), kMaxWaiting) != 0)
    return {};
  return listener;
}

bool HasEnded(const Descriptor& connection) {
  char byte = 0;
  return recv(connection.get(), &byte, sizeof(byte), MSG_PEEK) == 0;
}

// The file of what it runs; empty if this user may not see it.
std::string ProgramOf(std::uint32_t process) {
  std::error_code error;
  return std::filesystem::read_symlink(absl::StrCat("/proc/", process, "/exe"), error).string();
}

}  // namespace

class OutsideRecording::Serving {
 public:
  Serving(const RecordOptions& options, const std::string& folder)
      : options_(options), wake_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
    // This process needs its files to begin the command.
    if (HasFewFiles()) {
      refusal_.reason = absl::StrCat("this process may open fewer than ", kFewFiles,
                                     " files (ulimit -n), so perf events do not record them");
    } else {
      listener_ = ListenIn(folder);
    }
  }

  // Has the thread do it, or does it where there is none, and waits.
  void Do(const std::function<void()>& job);
  void Begin();
  void End();
  absl::Status AttachAtExec(std::uint32_t process, std::uint32_t thread);
  void AttachRunning(std::uint32_t process);
  std::optional<LoadedProfile> Take();

  std::uint32_t command = 0;  // the process of the command, if that is recorded so
  std::atomic<std::uint64_t> samples{0};
  OutsideRefusal TakeRefusal() {
    const std::scoped_lock lock(mutex_);
    return {refusal_.reason, std::exchange(refusal_.programs, 0)};
  }

 private:
  // A process that asks. The system says which it is.
  struct Asking {
    Descriptor connection;
    std::uint32_t process = 0;
    std::optional<AttachRequest> request{};
    bool has_failed = false;   // to execute
    bool has_events = false;   // opened for this request
    std::uint32_t thread = 0;  // that will execute
    std::string program{};     // that it ran when it asked
  };

  void Run();
  void DoJobs();
  void Wait(std::vector<pollfd>& polled);
  void Accept();
  // True if it has executed, and another process has inherited its connection, which goes on.
  bool HasLeft(const Asking& asking);
  // What has executed is not told any more.
  void EndAsk(const Asking& asking);
  // False once the connection is over.
  bool Answer(Asking& asking);
  bool TakeRequest(Asking& asking, const AttachRequest& request);
  absl::Status BeginEvents();
  absl::Status Note(absl::Status status);

  const RecordOptions& options_;
  Descriptor listener_;
  Descriptor wake_;  // readable when there are jobs
  LinuxPlatform::OwnThread thread_;
  bool is_over_ = false;
  bool can_accept_ = true;
  std::vector<Asking> asking_;
  std::unique_ptr<PerfSession> session_;  // once something has asked
  absl::Status status_;                   // of its events
  std::mutex mutex_;                      // of what follows
  std::vector<std::packaged_task<void()>> jobs_;
  OutsideRefusal refusal_;
};

void OutsideRecording::Serving::Do(const std::function<void()>& job) {
  if (!thread_.IsRunning()) return job();
  std::packaged_task<void()> task(job);
  std::future<void> done = task.get_future();
  {
    const std::scoped_lock lock(mutex_);
    jobs_.push_back(std::move(task));
  }
  eventfd_write(wake_.get(), 1);
  done.wait();
}

void OutsideRecording::Serving::DoJobs() {
  eventfd_t count = 0;
  eventfd_read(wake_.get(), &count);
  std::vector<std::packaged_task<void()>> jobs;
  {
    const std::scoped_lock lock(mutex_);
    jobs.swap(jobs_);
  }
  for (auto& job : jobs) job();
}

void OutsideRecording::Serving::Begin() {
  if (!wake_.is_open()) return;
  thread_ = LinuxPlatform::RunOnOwnThread("strobe-outside", [this] { Run(); });
}

void OutsideRecording::Serving::End() {
  Do([this] { is_over_ = true; });
  thread_.Join();
  // What asks from now on is refused at once, and does not wait.
  listener_.Close();
  asking_.clear();
}

void OutsideRecording::Serving::Run() {
  while (!is_over_) {
    // Without a free descriptor, a listener stays readable.
    const int listener = std::exchange(can_accept_, true) ? listener_.get() : -1;
    std::vector<pollfd> polled{{wake_.get(), POLLIN, 0}, {listener, POLLIN, 0}};
    for (const Asking& asking : asking_) polled.push_back({asking.connection.get(), POLLIN, 0});
    Wait(polled);
    std::size_t index = 2;
    std::erase_if(asking_, [&](Asking& asking) {
      return polled[index++].revents != 0 ? !Answer(asking) : HasLeft(asking);
    });
    if (polled[1].revents != 0) Accept();
    if (polled[0].revents != 0) DoJobs();
  }
}

void OutsideRecording::Serving::Wait(std::vector<pollfd>& polled) {
  if (session_ == nullptr || !status_.ok()) {
    const bool waits = asking_.empty() && polled[1].fd == listener_.get();
    poll(polled.data(), polled.size(),
         static_cast<int>((waits ? kForever : PerfSession::kRound).count()));
    return;
  }
  PerfRecorder& recorder = session_->recorder();
  status_ = recorder.Collect(polled, PerfSession::kRound);
  samples.store(recorder.counts().samples);
}

// A process that is not accepted waits as for an answer, and is attached to later.
void OutsideRecording::Serving::Accept() {
  while (true) {
    const int number = accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
    can_accept_ = number >= 0 || errno == EAGAIN || errno == EINTR || errno == ECONNABORTED;
    if (number < 0) return;
    Descriptor connection(number);
    ucred peer{};
    socklen_t bytes = sizeof(peer);
    if (getsockopt(connection.get(), SOL_SOCKET, SO_PEERCRED, &peer, &bytes) != 0) continue;
    const std::size_t most = FileShares::OfThisProcess().connections;
    if (peer.pid == 0) {
      static_cast<void>(Note(absl::PermissionDeniedError(
          "it runs in a PID namespace that this command does not see")));
    } else if (asking_.size() >= most) {
      static_cast<void>(Note(absl::ResourceExhaustedError(
          absl::StrCat("more than ", most, " processes have asked at once"))));
    } else {
      asking_.push_back({std::move(connection), static_cast<std::uint32_t>(peer.pid)});
    }
  }
}

void OutsideRecording::Serving::EndAsk(const Asking& asking) {
  const bool is_awaited = asking.request && asking.request->time == AttachTime::kAfterExec;
  if (is_awaited && !asking.has_failed) AttachRunning(asking.process);
}

bool OutsideRecording::Serving::HasLeft(const Asking& asking) {
  if (!asking.request || asking.has_failed || ProgramOf(asking.process) == asking.program)
    return false;
  EndAsk(asking);
  return true;
}

bool OutsideRecording::Serving::Answer(Asking& asking) {
  AttachRequest request;
  const ssize_t got = recv(asking.connection.get(), &request, sizeof(request), 0);
  // A reset comes before what the process has sent: it has left an answer unread.
  if (got < 0) return errno == EAGAIN || errno == EINTR || errno == ECONNRESET;
  if (got == 0) {
    EndAsk(asking);
    return false;
  }
  if (!asking.request) {
    if (got != sizeof(request)) return false;
    return TakeRequest(asking, request);
  }
  asking.has_failed = true;
  if (std::exchange(asking.has_events, false)) session_->recorder().Detach(asking.thread);
  return true;
}

// A process speaks of itself and its children alone.
bool OutsideRecording::Serving::TakeRequest(Asking& asking, const AttachRequest& request) {
  const auto id = static_cast<std::uint32_t>(request.id);
  if (request.time == AttachTime::kNow) {
    if (const std::uint32_t child = ChildCalled(asking.process, id); child != 0)
      AttachRunning(child);
    return false;
  }
  asking.program = ProgramOf(asking.process);
  asking.request = request;
  if (request.time == AttachTime::kAfterExec) return true;
  asking.thread = ThreadCalled(asking.process, id);
  const absl::Status status = asking.thread == 0 ? absl::NotFoundError("the thread has ended")
                                                 : AttachAtExec(asking.process, asking.thread);
  asking.has_events = status.ok();
  if (!HasEnded(asking.connection)) {
    static_cast<void>(send(asking.connection.get(), "", 1, MSG_NOSIGNAL));
    return true;
  }
  // It has not waited for so long: the program runs already.
  if (std::exchange(asking.has_events, false)) session_->recorder().Detach(asking.thread);
  if (status.ok() || absl::IsNotFound(status)) AttachRunning(asking.process);
  return true;
}

absl::Status OutsideRecording::Serving::Note(absl::Status status) {
  if (status.ok() || absl::IsNotFound(status) || absl::IsAlreadyExists(status)) return status;
  const std::scoped_lock lock(mutex_);
  ++refusal_.programs;
  if (refusal_.reason.empty()) refusal_.reason = std::string(status.message());
  return status;
}

absl::Status OutsideRecording::Serving::BeginEvents() {
  if (session_ != nullptr || !status_.ok()) return status_;
  if (!IsProcOwn()) {
    return status_ = absl::FailedPreconditionError(
               "/proc is that of another PID namespace than this command's (unshare --mount-proc "
               "mounts its own)");
  }
  absl::StatusOr<std::vector<PerfRequest>> requests = RequestsOf(options_);
  if (!requests.ok()) return status_ = requests.status();
  RaiseDescriptorLimit();
  auto session = std::make_unique<PerfSession>(options_, *std::move(requests));
  status_ = session->recorder().BeginMany({.left_out = std::string(kPreloadLibrary.substr(1))});
  if (status_.ok()) session_ = std::move(session);
  return status_;
}

absl::Status OutsideRecording::Serving::AttachAtExec(std::uint32_t process, std::uint32_t thread) {
  absl::Status status = BeginEvents();
  if (status.ok()) status = session_->recorder().AttachAtExec(process, thread, kOutside);
  return Note(std::move(status));
}

void OutsideRecording::Serving::AttachRunning(std::uint32_t process) {
  absl::Status status = BeginEvents();
  if (status.ok()) status = session_->recorder().Attach(process);
  if (status.ok()) status = session_->recorder().AttachDescendants(process);
  static_cast<void>(Note(std::move(status)));
}

std::optional<LoadedProfile> OutsideRecording::Serving::Take() {
  if (session_ == nullptr) return std::nullopt;
  PerfRecorder& recorder = session_->recorder();
  absl::StatusOr<LoadedProfile> loaded =
      is_over_ || !status_.ok() ? recorder.Finish(status_) : recorder.EndPeriod();
  samples.store(0);
  if (!loaded.ok()) {
    static_cast<void>(Note(loaded.status()));
    return std::nullopt;
  }
  if (loaded->profile.samples.empty()) return std::nullopt;
  if (command != 0) {
    loaded->profile.program = std::filesystem::path(options_.command[0]).filename().string();
    loaded->profile.process_id = command;
  }
  return *std::move(loaded);
}

OutsideRecording::OutsideRecording(const RecordOptions& options, const std::string& folder)
    : serving_(std::make_unique<Serving>(options, folder)) {}

OutsideRecording::~OutsideRecording() { End(); }

absl::Status OutsideRecording::AttachAtExec(std::uint32_t process) {
  serving_->command = process;
  return serving_->AttachAtExec(process, process);
}

void OutsideRecording::Begin() { serving_->Begin(); }

void OutsideRecording::Attach(std::uint32_t process) {
  serving_->Do([this, process] {
    serving_->command = process;
    serving_->AttachRunning(process);
  });
}

void OutsideRecording::End() { serving_->End(); }

std::optional<LoadedProfile> OutsideRecording::Take() {
  std::optional<LoadedProfile> taken;
  serving_->Do([this, &taken] { taken = serving_->Take(); });
  return taken;
}

std::uint64_t OutsideRecording::samples() const { return serving_->samples.load(); }

OutsideRefusal OutsideRecording::TakeRefusal() { return serving_->TakeRefusal(); }

}  // namespace strobe::internal
