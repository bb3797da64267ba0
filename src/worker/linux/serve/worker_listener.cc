#include "strobe/worker/serve/worker_listener.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <utility>

#include "../../../platform/linux/memory/freed_memory.h"
#include "../../../symbolize/names/name_store.h"
#include "absl/strings/str_cat.h"
#include "strobe/base/memory_guard.h"
#include "strobe/clock/system_clock.h"
#include "strobe/platform/refused_thread.h"
#include "strobe/worker/program/local_worker.h"

namespace strobe::internal {
namespace {

// Without a descriptor for the next connection, the listener looks again after that time.
constexpr int kFullPauseMs = 100;
// Names of images that are kept for the programs to come.
constexpr std::size_t kMaxNameBytes = std::size_t{128} << 20;
// Giving memory back to the system takes milliseconds: not more often than so while programs run.
constexpr std::int64_t kGiveBackEveryNs = 1'000'000'000;

absl::Status CannotListen(const char* what, int error) {
  return absl::UnavailableError(
      absl::StrCat("the system refuses ", what, ": ", std::strerror(error)));
}

}  // namespace

WorkerListener::WorkerListener(ListeningSocket socket, Serve serve, std::size_t max_programs)
    : socket_(std::move(socket)),
      serve_(std::move(serve)),
      max_programs_(max_programs),
      ended_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      ended_error_(ended_ < 0 ? errno : 0) {}

WorkerListener::~WorkerListener() {
  EndAll();
  if (ended_ >= 0) close(ended_);
}

absl::Status WorkerListener::Run(int stop) {
  if (ended_ < 0) return CannotListen("an eventfd", ended_error_);
  while (true) {
    std::array<pollfd, 3> events{
        pollfd{.fd = stop, .events = POLLIN, .revents = 0},
        pollfd{.fd = ended_, .events = POLLIN, .revents = 0},
        pollfd{.fd = socket_.descriptor(), .events = POLLIN, .revents = 0}};
    if (poll(events.data(), events.size(), -1) < 0 && errno != EINTR)
      return CannotListen("to wait for programs", errno);
    if (events[0].revents != 0) break;
    if (events[1].revents != 0) Reap();
    if (events[2].revents != 0) AcceptAll();
  }
  EndAll();
  return absl::OkStatus();
}

void WorkerListener::AcceptAll() {
  while (true) {
    absl::StatusOr<WorkerSocket> accepted = socket_.Accept();
    if (absl::IsResourceExhausted(accepted.status())) {
      Count(ServeEnd::kNoRoom);
      pollfd ended{.fd = ended_, .events = POLLIN, .revents = 0};
      poll(&ended, 1, kFullPauseMs);
      return;
    }
    if (!accepted.ok()) return;
    if (!HasMemoryFor([&] { Begin(*std::move(accepted)); })) Count(ServeEnd::kNoRoom);
  }
}

void WorkerListener::Begin(WorkerSocket socket) {
  if (absl::Status peer = socket.CheckPeer(); !peer.ok()) return Refuse(socket, peer);
  Reap();
  if (programs_.size() >= max_programs_) {
    return Refuse(socket, absl::ResourceExhaustedError(absl::StrCat(
                              "the worker serves ", max_programs_, " programs already")));
  }
  Program& program = programs_.emplace_back();
  program.socket = std::move(socket);
  program.thread = LinuxPlatform::RunOnOwnThread("strobe-serve", [this, &program] {
    static_cast<void>(HasMemoryFor([&] { program.end = serve_(program.socket); }));
    shutdown(program.socket.descriptor(), SHUT_RDWR);  // the program sees the end at once
    program.has_ended.store(true, std::memory_order_release);
    const std::uint64_t one = 1;
    static_cast<void>(write(ended_, &one, sizeof(one)) == sizeof(one));
  });
  const absl::Status status = StatusOfThread("the worker", program.thread);
  if (status.ok()) return;
  Refuse(program.socket, status);
  programs_.pop_back();
}

void WorkerListener::Refuse(const WorkerSocket& socket, const absl::Status& why) {
  Count(RefusalOf(why));
  static_cast<void>(socket.Send(AnswerOf(MessageKind::kWelcome, why)));
}

void WorkerListener::Reap() {
  std::uint64_t count = 0;
  static_cast<void>(read(ended_, &count, sizeof(count)) == sizeof(count));
  const std::size_t before = programs_.size();
  for (auto program = programs_.begin(); program != programs_.end();) {
    if (!program->has_ended.load(std::memory_order_acquire)) {
      ++program;
      continue;
    }
    program->thread.Join();
    Count(program->end);
    program = programs_.erase(program);
  }
  if (programs_.size() < before) GiveMemoryBack();
}

// Each session has been served by a thread of its own, and the C library keeps what those threads
// have freed, in pieces: about four times what is in use.
void WorkerListener::GiveMemoryBack() {
  const std::int64_t now_ns = SystemClock().MonotonicNs();
  if (!programs_.empty() && now_ns < given_back_ns_ + kGiveBackEveryNs) return;
  given_back_ns_ = now_ns;
  GiveFreedMemoryBack();
}

// A session that can receive nothing any more exports what it has, and ends.
void WorkerListener::EndAll() {
  for (const Program& program : programs_) shutdown(program.socket.descriptor(), SHUT_RD);
  for (Program& program : programs_) {
    program.thread.Join();
    Count(program.end);
  }
  programs_.clear();
}

namespace {

// The signals that end the process in its own time, while the object lives.
class EndSignals {
 public:
  EndSignals() {
    sigset_t set;
    sigemptyset(&set);
    for (const int signal : {SIGTERM, SIGINT, SIGHUP}) sigaddset(&set, signal);
    pthread_sigmask(SIG_BLOCK, &set, &before_);
    descriptor_ = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
  }
  ~EndSignals() {
    // One that has come is taken: it must not end the process with its own status now.
    signalfd_siginfo taken{};
    while (read(descriptor_, &taken, sizeof(taken)) == sizeof(taken)) {
    }
    if (descriptor_ >= 0) close(descriptor_);
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }
  EndSignals(const EndSignals&) = delete;
  EndSignals& operator=(const EndSignals&) = delete;
  [[nodiscard]] int descriptor() const { return descriptor_; }

 private:
  sigset_t before_{};
  int descriptor_ = -1;
};

}  // namespace

absl::StatusOr<ServeEndCounts> ListenWith(const std::string& path, const Announce& announce,
                                          WorkerListener::Serve serve) {
  const EndSignals signals;
  if (signals.descriptor() < 0) return CannotListen("a signalfd", errno);
  absl::StatusOr<ListeningSocket> socket =
      ListeningSocket::Open(path.empty() ? DefaultWorkerSocket() : path);
  if (!socket.ok()) return socket.status();
  RaiseDescriptorLimit();
  ShareNames(kMaxNameBytes);
  const std::string where = socket->path();
  WorkerListener listener(*std::move(socket), std::move(serve));
  announce(where);
  if (absl::Status status = listener.Run(signals.descriptor()); !status.ok()) return status;
  return listener.counts();
}

}  // namespace strobe::internal
