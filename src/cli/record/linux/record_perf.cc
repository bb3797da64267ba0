// RecordPerf: processes or a command, recorded until they end.
#include <poll.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "background_delivery.h"
#include "child.h"
#include "perf_session.h"
#include "record/record.h"
#include "record_program.h"
#include "recorded_processes.h"
#include "running_targets.h"
#include "signal_queue.h"
#include "strobe/worker/program/local_worker.h"

namespace strobe::internal {
namespace {

// What goes on for so long after the end of the command is worth a word.
constexpr int kRoundsUntilSaid = 10;

class PerfRecording {
 public:
  PerfRecording(const RecordOptions& options, RecordingOutput& output,
                std::vector<PerfRequest> requests, double period_s)
      : options_(options),
        output_(output),
        period_(std::chrono::nanoseconds(std::llround(period_s * 1e9))),
        session_(options, std::move(requests)) {}

  // Each returns the status to exit with.
  int RunCommand(const std::string& path);
  int RunProcesses();

 private:
  // Until `is_over` says so: see PerfSession.
  absl::Status Record(std::span<pollfd> polled, std::function<bool()> is_over);
  // Begins to deliver what was recorded so far. Nothing if the delivery before has not ended: the
  // next one has both.
  absl::Status EndPeriod();
  // Ends the recording, and delivers the rest. False if any delivery has failed.
  bool End(const absl::Status& status);
  // Names and writes a profile.
  bool Deliver(absl::StatusOr<LoadedProfile> loaded);

  const RecordOptions& options_;
  RecordingOutput& output_;
  const std::chrono::steady_clock::duration period_;  // of each profile; 0: one at the end
  PerfSession session_;
  PerfSession::Title title_;
  PerfCounts before_;            // of the periods that have ended
  BackgroundDelivery delivery_;  // of the last of them
};

absl::Status PerfRecording::Record(std::span<pollfd> polled, std::function<bool()> is_over) {
  return session_.Record(polled, {.is_over = std::move(is_over),
                                  .end_round =
                                      [this](double seconds) {
                                        const PerfCounts counts = session_.recorder().counts();
                                        output_.Print(seconds, before_.samples + counts.samples,
                                                      before_.lost + counts.lost);
                                      },
                                  .period = period_,
                                  .end_period = [this] { return EndPeriod(); }});
}

absl::Status PerfRecording::EndPeriod() {
  const PerfCounts counts = session_.recorder().counts();
  if (delivery_.IsBusy() || counts.samples == 0) return absl::OkStatus();
  absl::StatusOr<LoadedProfile> loaded = session_.recorder().EndPeriod();
  if (!loaded.ok()) return loaded.status();
  before_.samples += counts.samples;
  before_.lost += counts.lost;
  output_.BeginPeriods();
  const auto profile = std::make_shared<LoadedProfile>(*std::move(loaded));
  delivery_.Begin([this, profile] { return Deliver(std::move(*profile)); });
  return absl::OkStatus();
}

bool PerfRecording::End(const absl::Status& status) {
  absl::StatusOr<LoadedProfile> loaded = session_.recorder().Finish(status);
  const bool has_delivered = delivery_.Await();
  const bool is_empty = loaded.ok() && loaded->profile.samples.empty();
  const bool has_rest = !is_empty || before_.samples == 0;
  return (!has_rest || Deliver(std::move(loaded))) && has_delivered;
}

bool PerfRecording::Deliver(absl::StatusOr<LoadedProfile> loaded) {
  if (loaded.ok()) {
    loaded->profile.program = title_.program;
    loaded->profile.process_id = title_.process;
    loaded->profile.machine = output_.machine();
  }
  absl::Status named = loaded.ok() ? SymbolizeProfile(*loaded, session_.search()) : loaded.status();
  if (named.ok() && output_.has_directory()) named = output_.WriteToDirectory(*loaded);
  if (!named.ok()) loaded = named;
  return output_.Deliver(std::move(loaded), 1);
}

int PerfRecording::RunCommand(const std::string& path) {
  const std::string& name = options_.command[0];
  Child child;
  if (!options_.until_parent && !options_.is_machine) child.FollowTree();
  if (const int error = child.Fork({.path = path, .arguments = options_.command}); error != 0)
    return output_.Fail(absl::StrCat("no process for ", name, ": ", std::strerror(error)));
  RaiseDescriptorLimit();
  const absl::Status attached =
      options_.is_machine
          ? session_.AttachMachine()
          : session_.recorder().AttachAtExec(static_cast<std::uint32_t>(child.id()),
                                             static_cast<std::uint32_t>(child.id()), "the command");
  if (!attached.ok()) return output_.Fail(std::string(attached.message()));
  if (const int error = child.Run(); error != 0)
    return output_.Fail(absl::StrCat(name, ": ", std::strerror(error)), kCannotRun);
  title_ = options_.is_machine ? session_.TitleOfRunning()
                               : PerfSession::Title{std::filesystem::path(name).filename().string(),
                                                    static_cast<std::uint64_t>(child.id())};
  pollfd polled{child.descriptor(), POLLIN, 0};
  int rounds_after_end = 0;
  const absl::Status status = Record(std::span(&polled, 1), [&] {
    const bool is_over = child.Update();
    if (!is_over && child.has_ended() && ++rounds_after_end == kRoundsUntilSaid)
      SayWhatRuns(output_, RecordedProcesses({}).RunningChildren());
    return is_over;
  });
  if (child.has_ended()) child.ReleaseSignals();
  const bool is_written = End(status);
  child.StopFollowing();
  if (!child.has_ended()) child.Await(PerfSession::kRound, [] {});
  const int command_status = child.EndAsChildDid();
  return command_status != 0 || is_written ? command_status : kFailed;
}

int PerfRecording::RunProcesses() {
  RaiseDescriptorLimit();
  title_ = session_.TitleOfRunning();
  absl::Status status;
  {
    const SignalQueue signals(SignalsThatStop());
    RunningTargets targets(options_.processes, options_.threads);
    status = session_.AttachRunning();
    if (!status.ok()) return output_.Fail(std::string(status.message()));
    std::vector<pollfd> polled = targets.Polled();
    polled.push_back({signals.descriptor(), POLLIN, 0});
    status =
        Record(polled, [&] { return targets.HaveEnded(polled) || signals.Next().has_value(); });
  }
  return End(status) ? 0 : kFailed;
}

}  // namespace

int RecordPerf(const RecordOptions& options, RecordingOutput& output) {
  absl::StatusOr<std::vector<PerfRequest>> requests = RequestsOf(options);
  if (!requests.ok()) return output.Fail(std::string(requests.status().message()));
  // A thread may be off its CPU for several periods, by a stack that was in the first.
  const bool has_absences =
      std::ranges::find(*requests, true, &PerfRequest::is_off_cpu) != requests->end();
  if (has_absences && options.every_s) {
    return output.Fail("record: --every is not of off-cpu: leave out one of them", kWrongUse);
  }
  const double period_s = has_absences ? 0 : PeriodS(options);
  if (options.command.empty())
    return PerfRecording(options, output, *std::move(requests), period_s).RunProcesses();
  const RecordedProgram program = FindProgram(
      options.command[0], options.is_machine ? RecordedBy::kNothing : RecordedBy::kPerfEvents);
  if (!program.refusal.empty()) return output.Fail(program.refusal, program.status);
  return PerfRecording(options, output, *std::move(requests), period_s).RunCommand(program.path);
}

}  // namespace strobe::internal
