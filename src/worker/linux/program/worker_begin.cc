// RemoteCore: how it gets a worker, and another one when that has died.
#include "strobe/worker/program/remote_core.h"

#include <chrono>
#include <filesystem>
#include <memory>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "strobe/clock/system_clock.h"
#include "strobe/platform/linux/descriptor.h"
#include "strobe/runtime/session/recording_calls.h"
#include "strobe/worker/shared/listening_socket.h"
#include "strobe/worker/shared/worker_offer.h"

namespace strobe::internal {
// The threads' accounts begin now.
void RemoteCore::AnnounceAll() {
  const SharedArea& area = Platform::Area();
  const std::int64_t now_ns = SystemClock().MonotonicNs();
  for (const RemoteChannels::Entry& entry : channels_->All()) {
    SharedRegistration& shared = *area.At(entry.index);
    if (shared.state.load(std::memory_order_acquire) == SharedRegistrationState::kTaken) {
      shared.since_cpu_ns = Platform::ThreadCpuTimeNs(entry.thread_id);
      shared.since_ns = now_ns;
    }
    area.Announce(entry.index);
  }
}

// Joins the worker that serves all programs of the user. Where there is none, or it has no room,
// begins one of the program's own.
absl::Status RemoteCore::BeginWorker() {
  is_here_ = false;
  const std::string& path = *options().worker.socket;
  if (!path.empty()) {
    absl::StatusOr<WorkerProcess> joined = WorkerProcess::Join(path);
    if (joined.ok() && Greet(*std::move(joined)).ok()) return absl::OkStatus();
  }
  absl::StatusOr<WorkerProcess> worker = WorkerProcess::Begin(*options().worker.command);
  if (!worker.ok()) return worker.status();
  const absl::Status status = Greet(*std::move(worker));
  if (!absl::IsUnavailable(status)) return status;
  return absl::UnavailableError(
      absl::StrCat("the worker process has not answered (does the program's main call "
                   "RunWorkerIfAsked, or is worker.command the strobe command?): ",
                   status.message()));
}

// Has the program served by a thread of its own, if the options want that. `why` is what became of
// the worker process.
absl::Status RemoteCore::FallBack(absl::Status why) {
  Serve serve = ServeHere();
  if (!serve) serve = serve_here_;
  if (*options().worker.fallback == WorkerFallback::kNone || is_here_ || !serve) return why;
  Platform::WriteLine("strobe: samples in process: " + std::string(why.message()));
  is_here_ = true;
  absl::StatusOr<WorkerProcess> worker =
      WorkerProcess::BeginHere(std::move(serve), Platform::Area());
  if (!worker.ok()) return worker.status();
  absl::Status status = Greet(*std::move(worker));
  // A worker that is a process exports by itself when the program has ended.
  if (status.ok() && *options().exporter.export_on_signal) TakeEndingSignals();
  return status;
}

// Tells a new worker what it serves, and takes the worker if that welcomes the program. Unavailable
// if it does not answer. One in this process has the area and needs no copies of the tables.
absl::Status RemoteCore::Greet(WorkerProcess worker) {
  const absl::StatusOr<Message> offered = worker.AwaitOffer();
  if (!offered.ok()) return absl::UnavailableError(offered.status().message());
  absl::StatusOr<WorkerOffer> offer = AdoptOffer(*offered);
  if (!offer.ok()) return offer.status();
  AnnounceAll();
  const SharedArea& area = Platform::Area();
  const RemoteChannels::Layout layout = channels_->layout();
  const HelloText hello{
      .head = {.process_id = Platform::ProcessId(),
               .copy_mark = ChannelToken::CopyMark(),
               .signal =
                   static_cast<std::uint32_t>(signal().number.load(std::memory_order_relaxed)),
               .channel_bytes = layout.channel_bytes,
               .cells = layout.cells,
               .chunk_bytes = layout.chunk_bytes,
               .ring_bytes = static_cast<std::uint32_t>(*options().threads.ring_bytes),
               .tables_address = offer->tables.address(),
               .store_address = offer->store.address(),
               .worker = Platform::BeginWorker()},
      .program = Platform::ProgramName(),
      .value_types = JoinValueTypes(layout.value_types),
      .options = OptionLines()};
  Message message{.kind = MessageKind::kHello, .text = JoinHello(hello)};
  const Descriptor memory(is_here_ ? -1 : area.NewDescriptor());
  message.descriptors[0] = memory.get();
  absl::Status status = worker.socket().Send(message);
  ReplaceTables(std::move(offer->tables), std::move(offer->store));
  const absl::StatusOr<Message> answer =
      status.ok() ? worker.socket().Receive(kWelcomeTimeoutNs) : status;
  if (!answer.ok()) return absl::UnavailableError(answer.status().message());
  status = StatusOf(*answer, MessageKind::kWelcome);
  if (status.ok()) {
    worker_ = std::move(worker);
  } else {
    channels_->Close();
  }
  return status;
}

// Captures get no tables until the new worker has some: see BeginWorker. The old ones are unmapped
// unless a capture may still read them.
void RemoteCore::ReplaceTables(TableMemory tables, TableMemory store) {
  if (channels_->IsCapturing()) {
    tables_.KeepMapped();
    store_.KeepMapped();
  }
  tables_ = std::move(tables);
  store_ = std::move(store);
}

// The worker may work in another directory.
std::string RemoteCore::OptionLines() const {
  ProfilerOptions options = CoreBase::options();
  std::error_code error;
  const std::filesystem::path directory =
      std::filesystem::absolute(*options.exporter.directory, error);
  if (!error) options.exporter.directory = directory.string();
  std::string lines;
  for (const OptionRow& row : OptionTable())
    absl::StrAppend(&lines, absl::string_view(row.field.data(), row.field.size()), "=",
                    row.get(options), "\n");
  return lines;
}

// Counts what a worker that has died had not exported, and what threads used since: see
// ExportMarks. Requires that another one begins next, or none.
void RemoteCore::CountLoss() {
  const SharedArea& area = Platform::Area();
  std::int64_t lost_ns = area.header().unexported_cpu_ns.exchange(0, std::memory_order_relaxed);
  for (const RemoteChannels::Entry& entry : channels_->All()) {
    SharedRegistration& shared = *area.At(entry.index);
    const SharedRegistrationState state = shared.state.load(std::memory_order_acquire);
    if (state == SharedRegistrationState::kFree || shared.since_cpu_ns < 0) continue;
    const std::int64_t cpu_ns = state == SharedRegistrationState::kLeft
                                    ? shared.end_cpu_ns
                                    : Platform::ThreadCpuTimeNs(entry.thread_id);
    if (cpu_ns <= shared.since_cpu_ns) continue;
    lost_ns += cpu_ns - shared.since_cpu_ns;
    shared.since_cpu_ns = cpu_ns;
  }
  area.header().lost_cpu_ns.store(lost_ns, std::memory_order_relaxed);
  if (lost_ns <= 0) return;
  lost_cpu_ns_.fetch_add(lost_ns, std::memory_order_relaxed);
  workers_lost_.fetch_add(1, std::memory_order_relaxed);
}

// Ends the connection: see WorkerProcess::End. A worker whose connection the program itself has
// closed may live, and drain the area.
void RemoteCore::EndWorker(std::int64_t timeout_ns) {
  const bool may_live = !worker_->socket().is_open();
  worker_->End(timeout_ns);
  worker_.reset();
  Platform::Area().TakeBack(may_live ? kHandOverNs : 0);
}

// Begins another worker if this one has died. Its threads' accounts begin anew.
absl::Status RemoteCore::SeeToWorker() {
  if (!is_running_.load(std::memory_order_relaxed)) return NotRunning();
  if (worker_ && !worker_->socket().HasEnded()) return absl::OkStatus();
  if (worker_) {
    channels_->Close();  // what the program brings from here on, no profile has
    EndWorker(0);
  }
  const std::int64_t now_ns = SystemClock().MonotonicNs();
  if (restarts_ < kMaxRestarts && now_ns < next_restart_ns_)
    return absl::UnavailableError("the worker process has died");
  CountLoss();
  if (restarts_ == kMaxRestarts)
    return FallBack(absl::UnavailableError("the worker process has died too often"));
  next_restart_ns_ = now_ns + (kFirstRestartNs << restarts_);
  ++restarts_;
  if (Platform::Area().descriptor() >= 0) return BeginWorker();
  is_here_ = false;
  return FallBack(
      absl::UnavailableError("the program has closed the memory that it shares with its worker"));
}

}  // namespace strobe::internal
