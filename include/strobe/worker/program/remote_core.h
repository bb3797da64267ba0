// RemoteCore: implements the calls of a Profiler with a worker, in the program.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "strobe/base/visibility.h"
#include "strobe/core/options.h"
#include "strobe/core/recording_options.h"
#include "strobe/core/registration.h"
#include "strobe/core/stats.h"
#include "strobe/runtime/control/core_base.h"
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

struct RecordingRequest;

// No thread of it exists. The program's own threads, when they register, end or call, notice that
// the worker has died, and begin another.
class RemoteCore final : public CoreBase<RemotePlatform> {
 public:
  // `options` are final: the environment has been applied. `serve_here`, for worker.fallback, may
  // be empty; what main has given to RunWorkerIfAsked goes first.
  RemoteCore(ProfilerOptions options, std::unique_ptr<RemoteChannels> channels,
             Serve serve_here = {});
  // With the channels of the default parts.
  explicit RemoteCore(const ProfilerOptions& options, Serve serve_here = {});
  ~RemoteCore() override;  // no thread may be registered

  bool CaptureHere(const EventSample& event, const NativeRegisters* registers) noexcept override;
  [[nodiscard]] bool IsRunning() const override {
    return is_running_.load(std::memory_order_acquire);
  }
  [[nodiscard]] OwnRegistration FindOwnRegistration() const override;

 private:
  // See CoreBase.
  absl::StatusOr<RegisteredHere> TryRegister(std::string_view name) override;
  void CountRefused() override { channels_->CountRefused(); }
  bool Unregister(void* registered, std::uint64_t thread_id) override;
  std::size_t Orphan() override { return channels_->Orphan(); }
  absl::StatusOr<std::shared_ptr<GeneratedCodeOwner>> TryToOpenCode() override;
  [[nodiscard]] Stats TryToCollectStats() override;
  [[nodiscard]] std::string TryToDiagnose() override;
  [[nodiscard]] absl::StatusOr<Profile> TryToRecord(const RecordingOptions& options) override;
  [[nodiscard]] absl::Status TryToDump(
      const std::shared_ptr<const std::atomic<bool>>& cancelled) override;
  // Holds no lock while it waits.
  [[nodiscard]] absl::StatusOr<Profile> AskWorker(const RecordingRequest& request);
  absl::Status TryToBegin() override;
  void NoteStart(const absl::Status& status) override { last_start_ = status; }
  [[nodiscard]] absl::Status MayStop() const override;
  absl::Status FlushSession() override;
  absl::Status EndSession(bool ends_process) override;
  [[nodiscard]] std::size_t arena_number() const override { return channels_->number(); }
  [[nodiscard]] std::chrono::nanoseconds StopPatience() const override;

  absl::Status Open();
  // Each requires control_mutex().
  absl::Status BeginWorker();
  absl::Status Greet(WorkerProcess worker);
  absl::Status FallBack(absl::Status why);
  void ReplaceTables(TableMemory tables, TableMemory store);
  absl::Status SeeToWorker();
  void EndWorker(std::int64_t timeout_ns);
  void CountLoss();

  static void Share(const RemoteChannels::Entry& entry);
  void AnnounceAll();
  [[nodiscard]] std::string OptionLines() const;

  const std::unique_ptr<RemoteChannels> channels_;
  const std::shared_ptr<RemoteCode> code_ = std::make_shared<RemoteCode>();

  // Of these, only a thread that has control_mutex() uses those that are no atomics.
  std::optional<WorkerProcess> worker_;
  const Serve serve_here_;
  bool is_here_ = false;  // the fallback: the worker is a thread of the program
  TableMemory tables_;
  TableMemory store_;  // of the worker's tables
  std::atomic<bool> is_running_{false};
  absl::Status last_start_;
  int restarts_ = 0;
  std::int64_t next_restart_ns_ = 0;
  std::atomic<std::uint64_t> workers_lost_{0};
  std::atomic<std::int64_t> lost_cpu_ns_{0};  // with them
};

}  // namespace internal
}  // namespace strobe
