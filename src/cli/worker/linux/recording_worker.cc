#include "recording_worker.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <cstdint>
#include <optional>
#include <utility>

#include "../../../platform/linux/files/few_files.h"
#include "strobe/platform/linux/descriptor.h"
#include "strobe/worker/program/local_worker.h"
#include "strobe/worker/serve/worker_listener.h"
#include "strobe/worker/shared/listening_socket.h"
#include "worker_output.h"

namespace strobe::internal {

struct RecordingWorker::Listening {
  Descriptor stop{eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};  // readable when all shall end
  WorkerListener listener;
  LinuxPlatform::OwnThread thread;

  explicit Listening(ListeningSocket socket, Serve serve)
      : listener(std::move(socket), [serve = std::move(serve)](const WorkerSocket& program) {
          return serve(program, nullptr);
        }) {}
};

RecordingWorker::RecordingWorker(const std::string& folder) {
  // This process needs files to begin the program.
  if (folder.empty() || HasFewFiles()) return;
  absl::StatusOr<Serve> serve = ServeWithAskedOutput();
  absl::StatusOr<ListeningSocket> socket = ListeningSocket::Open(folder + "/worker/socket");
  if (!serve.ok() || !socket.ok()) return;
  const std::string path = socket->path();
  auto listening = std::make_unique<Listening>(*std::move(socket), *std::move(serve));
  if (!listening->stop.is_open()) return;
  listening_ = std::move(listening);
  path_ = path;
}

RecordingWorker::~RecordingWorker() { End(); }

void RecordingWorker::Begin() {
  if (listening_ == nullptr) return;
  RaiseDescriptorLimit();
  listening_->thread = LinuxPlatform::RunOnOwnThread("strobe-listen", [own = listening_.get()] {
    static_cast<void>(own->listener.Run(own->stop.get()));
  });
  // The socket goes with the listener. A program that connects is refused at once, and begins a
  // worker of its own.
  if (!listening_->thread.IsRunning()) listening_.reset();
}

void RecordingWorker::End() {
  if (listening_ == nullptr) return;
  const std::uint64_t one = 1;
  static_cast<void>(write(listening_->stop.get(), &one, sizeof(one)) == sizeof(one));
  listening_->thread.Join();
  listening_.reset();
}

}  // namespace strobe::internal
