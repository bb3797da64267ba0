// RunLive: perf events, a period at a time.
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "commands/command_line.h"
#include "commands/profile_symbolizer.h"
#include "live/keys.h"
#include "live/live.h"
#include "live/live_view.h"
#include "perf/proc_files.h"
#include "record/linux/perf_session.h"
#include "record/linux/running_targets.h"
#include "record/linux/signal_queue.h"
#include "screen.h"
#include "strobe/platform/program_place.h"
#include "strobe/worker/program/local_worker.h"

namespace strobe::internal {
namespace {

using SteadyClock = std::chrono::steady_clock;

constexpr double kUsualPeriodS = 1;
// What is read of the files of code stays in memory within this.
constexpr std::size_t kLiveSymbolBytes = std::size_t{256} << 20;
// Behind a table that stays, for what the shell writes.
constexpr std::size_t kLinesBehind = 3;

// What is written of the process or thread.
std::string NameOf(std::uint32_t id) {
  const std::string name = WholeProcessName(id, StatusValue(id, "Name"));
  return absl::StrCat(name.empty() ? "" : name + " ", id);
}

std::string WhatIsWatched(const RecordOptions& options) {
  if (!options.cgroup.empty()) return "control group " + options.cgroup;
  if (options.is_machine) return HostName();
  std::vector<std::string> names;
  for (const std::vector<std::uint32_t>& ids : {options.processes, options.threads}) {
    for (const std::uint32_t id : ids) names.push_back(NameOf(id));
  }
  return absl::StrJoin(names, ", ");
}

// Functions alone: to look up the lines of code that has just been met would cost more than all the
// rest.
ImageSymbolizerOptions NamesIn(const SymbolSearch& search) {
  ImageSymbolizerOptions options{.mode = SymbolMode::kNames, .cache_bytes = kLiveSymbolBytes};
  options.search = search;
  options.search.fetch = nullptr;  // a server may be slow
  return options;
}

class Live {
 public:
  Live(const RecordOptions& recording, const Request& request, const Terminal& terminal,
       std::vector<PerfRequest> requests)
      : recording_(recording),
        request_(request),
        terminal_(terminal),
        session_(recording, std::move(requests)),
        symbolizer_(NamesIn(session_.search())),
        what_(WhatIsWatched(recording)),
        view_({.what = what_, .by_process = recording.is_machine, .by_total = request.by_total}) {}

  // Returns the status to exit with.
  int Run();

 private:
  // What is wrong with the arguments is said before the terminal is taken.
  absl::Status Begin();
  absl::Status Watch(const SignalQueue& signals, RunningTargets& targets);
  // False once a signal ends it.
  bool TakeSignals(const SignalQueue& signals);
  // False once a key ends it.
  bool TakeKeys();
  absl::Status EndPeriod();
  absl::Status Add(LoadedProfile loaded);
  void Draw();
  void Print();
  // What stays on the terminal.
  void PrintLast();
  void SayTheEnd() const;

  const RecordOptions& recording_;
  const Request& request_;
  const Terminal terminal_;
  const Printer printer_{terminal_};
  PerfSession session_;
  ProfileSymbolizer symbolizer_;
  const std::string what_;  // is watched
  LiveView view_;
  KeyReader keys_;
  std::optional<Screen> screen_;
  SteadyClock::time_point period_begin_;
  bool has_shown_ = false;
  bool can_write_ = true;
  bool have_ended_ = false;  // the targets
};

int Live::Run() {
  RaiseDescriptorLimit();
  absl::Status status;
  {
    const SignalQueue signals(SignalsThatStop({SIGWINCH, SIGTSTP, SIGCONT}));
    RunningTargets targets(recording_.processes, recording_.threads);
    status = Begin();
    if (status.ok()) status = Watch(signals, targets);
    if (screen_) PrintLast();
  }
  if (!status.ok()) {
    SayError(std::string(status.message()));
    return kFailed;
  }
  if (!can_write_) {
    SayError("cannot write standard output");
    return kFailed;
  }
  if (const std::string what = session_.recorder().NotUnwound(); !what.empty()) SayError(what);
  if (have_ended_) SayTheEnd();
  return 0;
}

absl::Status Live::Begin() {
  if (absl::Status status = session_.AttachRunning(); !status.ok()) return status;
  absl::StatusOr<LoadedProfile> loaded = session_.recorder().EndPeriod();
  if (!loaded.ok()) return loaded.status();
  period_begin_ = SteadyClock::now();
  return MakeFilteredProfile(*std::move(loaded), request_).status();
}

absl::Status Live::Watch(const SignalQueue& signals, RunningTargets& targets) {
  if (!request_.json && Screen::CanDrawOn(STDOUT_FILENO)) {
    screen_.emplace(STDIN_FILENO, STDOUT_FILENO);
    Draw();
  }
  std::vector<pollfd> polled = targets.Polled();
  polled.push_back({signals.descriptor(), POLLIN, 0});
  polled.push_back({screen_ ? screen_->keys_descriptor() : -1, POLLIN, 0});
  const auto is_over = [&] {
    have_ended_ = targets.HaveEnded(polled);
    const bool has_keys = polled.back().revents != 0;
    return have_ended_ || !can_write_ || !TakeSignals(signals) || (has_keys && !TakeKeys());
  };
  const double period_s = recording_.every_s.value_or(kUsualPeriodS);
  absl::Status status =
      session_.Record(polled, {.is_over = is_over,
                               .period = std::chrono::nanoseconds(std::llround(period_s * 1e9)),
                               .end_period = [this] { return EndPeriod(); }});
  absl::StatusOr<LoadedProfile> rest = session_.recorder().Finish(status);
  const bool is_needed = !has_shown_ || (!screen_ && rest.ok() && !rest->profile.samples.empty());
  if (status.ok() && is_needed) status = rest.ok() ? Add(*std::move(rest)) : rest.status();
  return status;
}

bool Live::TakeSignals(const SignalQueue& signals) {
  while (const std::optional<signalfd_siginfo> signal = signals.Next()) {
    switch (signal->ssi_signo) {
      case SIGWINCH: break;
      case SIGTSTP:
        if (screen_) screen_->Leave();
        raise(SIGSTOP);
        break;
      case SIGCONT:
        if (screen_) screen_->Enter();
        break;
      default: return false;
    }
    if (signal->ssi_signo != SIGTSTP) Draw();
  }
  return true;
}

bool Live::TakeKeys() {
  const std::optional<std::string> bytes = screen_->ReadKeys();
  if (!bytes) return false;
  for (const Key& key : keys_.Take(*bytes)) {
    if (!view_.Press(key)) return false;
  }
  Draw();
  return true;
}

absl::Status Live::EndPeriod() {
  absl::StatusOr<LoadedProfile> loaded = session_.recorder().EndPeriod();
  return loaded.ok() ? Add(*std::move(loaded)) : loaded.status();
}

absl::Status Live::Add(LoadedProfile loaded) {
  const SteadyClock::time_point now = SteadyClock::now();
  const double seconds =
      std::chrono::duration<double>(now - std::exchange(period_begin_, now)).count();
  if (absl::Status status = symbolizer_.Symbolize(loaded); !status.ok()) return status;
  const absl::StatusOr<FilteredProfile> period = MakeFilteredProfile(std::move(loaded), request_);
  if (!period.ok()) return period.status();
  view_.Add(*period, seconds);
  has_shown_ = true;
  screen_ ? Draw() : Print();
  return absl::OkStatus();
}

void Live::Draw() {
  if (!screen_) return;
  can_write_ = can_write_ && screen_->Draw(view_.Screen(screen_->size(), printer_));
}

void Live::Print() {
  const std::string text =
      request_.json
          ? view_.Json(request_.rows)
          : view_.Table(request_.rows, static_cast<std::size_t>(terminal_.columns), printer_) +
                "\n";
  can_write_ = std::fputs(text.c_str(), stdout) >= 0 && std::fflush(stdout) == 0;
}

void Live::PrintLast() {
  const LiveView::Size size = screen_->size();
  screen_->Leave();
  const std::size_t rows = std::max(size.rows, kLinesBehind + 2) - kLinesBehind - 1;
  std::fputs(view_.Table(rows, size.columns, printer_).c_str(), stdout);
  std::fflush(stdout);
}

void Live::SayTheEnd() const {
  const std::string kind = recording_.threads.empty() ? "process" : "thread";
  const bool is_one = recording_.processes.size() + recording_.threads.size() == 1;
  SayError(is_one ? absl::StrCat(kind, " ", what_, " has ended")
                  : absl::StrCat("all have ended: ", what_));
}

}  // namespace

int RunLive(const RecordOptions& recording, const Request& request, const Terminal& terminal) {
  absl::StatusOr<std::vector<PerfRequest>> requests = RequestsOf(recording);
  if (requests.ok()) return Live(recording, request, terminal, *std::move(requests)).Run();
  SayError(std::string(requests.status().message()));
  return kFailed;
}

}  // namespace strobe::internal
