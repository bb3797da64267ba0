// RemoteCore: implements the calls of a Profiler with a worker, in the program.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "strobe/base/visibility.h"
#include "strobe/core/options.h"
#include "strobe/core/registration.h"
#include "strobe/core/stats.h"
#include "strobe/runtime/control/abstract_core.h"
#include "strobe/runtime/control/exit_list.h"
#include "strobe/runtime/control/session_toggle.h"
#include "strobe/runtime/control/signal_exit.h"
#include "strobe/runtime/session/delivery_check.h"
#include "strobe/worker/program/local_worker.h"
#include "strobe/worker/program/remote_channels.h"
#include "strobe/worker/program/remote_code.h"
#include "strobe/worker/program/remote_platform.h"
#include "strobe/worker/program/worker_process.h"

namespace strobe {
namespace STROBE_HIDDEN internal {

// How often a worker that has died is begun again, and how long after its begin at the earliest.
// That time doubles with each.
inline constexpr int kMaxRestarts = 5;
inline constexpr std::int64_t kFirstRestartNs = 1'000'000'000;
// How long the program waits for a worker that it has lost, and that may live, to drain what it has
// sampled so far. Without an answer, that counts as lost with the worker.
inline constexpr std::int64_t kHandOverNs = 200'000'000;

// No thread of it exists. The program's own threads, when they register, end or call, notice that
// the worker has died, and begin another.
class RemoteCore final : public AbstractCore, private StoppedAtExit {
 public:
  using Platform = RemotePlatform;

  // `options` are final: the environment has been applied. `serve_here`, for worker.fallback, may
  // be empty; what main has given to RunWorkerIfAsked goes first.
  RemoteCore(ProfilerOptions options, std::unique_ptr<RemoteChannels> channels,
             Serve serve_here = {});
  // With the channels of the default parts.
  explicit RemoteCore(const ProfilerOptions& options, Serve serve_here = {});
  ~RemoteCore() override;  // no thread may be registered

  [[nodiscard]] bool IsOfThisProcess() const override;
  Registration RegisterThread(std::string_view name) override;
  CodeRegistration RegisterCode(const GeneratedCode& code) override;
  absl::Status Start() override;
  absl::Status Stop() override;
  absl::Status Flush() override;
  absl::StatusOr<Profile> Record(const RecordingOptions& options) override;
  bool CaptureHere(const EventSample& event, const NativeRegisters* registers) noexcept override;
  absl::Status ToggleStatus() override;
  Stats GetStats() override;
  std::string Diagnose() override;
  void Retire() override;
  [[nodiscard]] bool IsRunning() const override;
  [[nodiscard]] OwnRegistration FindOwnRegistration() const override;

  // See RegistrationOwner.
  void EndRegistration(void* registered, std::uint64_t thread_id) override;

 private:
  void StopAtExit() override;
  void StopForSignal();

  [[nodiscard]] absl::Status Usable() const;
  absl::Status Open();
  absl::Status TryToAwaitToggle();
  void Toggle();
  absl::StatusOr<RemoteChannels::Entry> TryRegister(std::string_view name);
  // The last stop, on whichever thread.
  void StopForGood();
  // Each requires control_mutex_.
  absl::Status StartLocked();
  absl::Status StopLocked();
  absl::Status BeginWorker();
  absl::Status Greet(WorkerProcess worker);
  absl::Status FallBack(absl::Status why);
  void TakeEndingSignals();
  void ReplaceTables(TableMemory tables, TableMemory store);
  absl::Status SeeToWorker();
  void EndWorker(std::int64_t timeout_ns);
  absl::StatusOr<Profile> TryToRecord(const RecordingOptions& options);
  void CountLoss();

  static void Share(const RemoteChannels::Entry& entry);
  void AnnounceAll();
  [[nodiscard]] std::int64_t stop_timeout_ns() const;
  [[nodiscard]] std::string OptionLines() const;

  const std::uint64_t fork_count_;
  const ProfilerOptions options_;
  const absl::Status options_status_;
  SignalInUse signal_;
  const std::unique_ptr<RemoteChannels> channels_;
  const std::shared_ptr<RemoteCode> code_ = std::make_shared<RemoteCode>();

  std::mutex control_mutex_;  // one call that speaks with the worker at a time
  std::optional<WorkerProcess> worker_;
  const Serve serve_here_;
  bool is_here_ = false;  // the fallback: the worker is a thread of the program
  TableMemory tables_;
  TableMemory store_;  // of the worker's tables
  std::atomic<bool> is_running_{false};
  bool is_listed_ = false;  // in the ExitList, unless the exit has removed it
  std::atomic<bool> is_exit_using_{false};
  absl::Status last_start_;
  int restarts_ = 0;
  std::int64_t next_restart_ns_ = 0;
  std::atomic<std::uint64_t> workers_lost_{0};
  std::atomic<std::int64_t> lost_cpu_ns_{0};  // with them
  std::mutex toggle_mutex_;
  // The last: their threads use the others.
  std::optional<SignalExit<Platform>> signal_exit_;  // of a worker that is a thread of the program
  std::optional<SessionToggle<Platform>> toggle_;    // if sampling.toggle_signal asks for it
};

}  // namespace internal
}  // namespace strobe
