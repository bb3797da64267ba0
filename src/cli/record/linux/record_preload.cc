// strobe record CMD: the command, with a library preloaded that profiles it.
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "../../../process/linux/call_filters.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "background_delivery.h"
#include "child.h"
#include "mapped_files.h"
#include "outside_recording.h"
#include "record/record.h"
#include "record_profile.h"
#include "record_program.h"
#include "recorded_processes.h"
#include "recording_folder.h"
#include "strobe/core/settings/known_variables.h"
#include "worker/linux/recording_worker.h"

namespace strobe::internal {
namespace {

// A process that a signal ends leaves what it has exported: at most this much is missing.
constexpr int kExportPeriodS = 5;
// How long workers may export after the program's end. Those of children that live on do not end.
constexpr std::chrono::milliseconds kLongestExport(3000);
constexpr const char* kOutputVariable = "STROBE_RECORD_OUTPUT_DIRECTORY";
constexpr std::chrono::milliseconds kTakePeriod(1000);
// How often it is looked whether the programs have exported what they had when the time was over.
constexpr std::chrono::milliseconds kLastTakePeriod(10);
// More than a profiler takes that always runs: a recorded program often ends soon.
constexpr const char* kMaxOverhead = "0.01";

std::filesystem::path CommandPath() {
  std::error_code error;
  return std::filesystem::read_symlink("/proc/self/exe", error);
}

// The name of the library that sees what is asked for.
const char* LibraryFor(const RecordOptions& options) {
  const int kinds = static_cast<int>(options.allocations) + static_cast<int>(options.locks) +
                    static_cast<int>(options.exceptions);
  if (kinds > 1) return "libstrobe-preload-events.so";
  if (options.allocations) return "libstrobe-preload-allocations.so";
  if (options.locks) return "libstrobe-preload-locks.so";
  return options.exceptions ? "libstrobe-preload-exceptions.so" : "libstrobe-preload.so";
}

// The library beside the command: see STROBE_LIBRARY_FOLDERS in meson.build.
std::string FindLibrary(const char* name) {
  std::error_code error;
  const std::filesystem::path command = CommandPath();
  const std::vector<std::string> folders = absl::StrSplit(STROBE_LIBRARY_FOLDERS, ':');
  for (const std::string& folder : folders) {
    const std::filesystem::path path = (command.parent_path() / folder / name).lexically_normal();
    if (std::filesystem::exists(path, error)) return path.string();
  }
  return {};
}

// What perf events do not see.
std::string AskedBesideCpuTime(const RecordOptions& options) {
  std::vector<std::string> asked;
  if (options.allocations) asked.emplace_back("--alloc");
  if (options.locks) asked.emplace_back("--locks");
  if (options.exceptions) asked.emplace_back("--exceptions");
  if (options.wall_hz) asked.emplace_back("--wall");
  return absl::StrJoin(asked, ", ");
}

using SteadyClock = std::chrono::steady_clock;
using Variables = std::vector<std::pair<std::string, std::string>>;

double ExportPeriodS(const RecordOptions& options) {
  const double every_s = PeriodS(options);
  return every_s > 0 ? std::min<double>(every_s, kExportPeriodS) : kExportPeriodS;
}

// The value of kRecordingUntilVariable.
std::string UntilText(SteadyClock::time_point until) {
  return absl::StrCat(std::chrono::nanoseconds(until.time_since_epoch()).count());
}

Variables VariablesFor(const RecordOptions& options, const std::string& library,
                       const RecordingFolder& folder, const RecordingWorker& worker,
                       SteadyClock::time_point until) {
  const char* const preloaded = std::getenv("LD_PRELOAD");
  const bool has_others = preloaded != nullptr && *preloaded != '\0';
  Variables variables{{"LD_PRELOAD", has_others ? absl::StrCat(library, ":", preloaded) : library},
                      {kOutputVariable, folder.shared_path()},
                      {kRecordingVariable, folder.shared_path()},
                      {"STROBE_RECORD_MAX_FILES", "1000000"},
                      // The command finds the names, when the program has ended, and says what
                      // machine this is: before Linux 5.18, to ask for that takes 10 ms.
                      {"STROBE_RECORD_SYMBOLS", "none"},
                      {"STROBE_RECORD_MACHINE_TAGS", "0"},
                      // The recording has all of the time, and takes no windows of it.
                      {"STROBE_RECORD_KEEP_LAST_S", "0"},
                      {"STROBE_RECORD_KEEP_DUMP_SIGNAL", "0"},
                      {"STROBE_RECORD_KEEP_CPU_PERCENT", "0"},
                      {"STROBE_RECORD_KEEP_SLOW_SPANS", "0"}};
  // Also where there is none: this may be a part of another recording.
  if (options.duration_s > 0 || std::getenv(kRecordingUntilVariable) != nullptr) {
    variables.emplace_back(kRecordingUntilVariable, options.duration_s > 0 ? UntilText(until) : "");
  }
  if (options.hz)
    variables.emplace_back("STROBE_RECORD_CPU_FREQUENCY_HZ", absl::StrCat(*options.hz));
  if (options.wall_hz)
    variables.emplace_back("STROBE_RECORD_WALL_FREQUENCY_HZ", absl::StrCat(*options.wall_hz));
  if (options.mode == RecordingMode::kWorker) {
    variables.emplace_back("STROBE_RECORD_WORKER", "1");
    variables.emplace_back("STROBE_RECORD_WORKER_SOCKET", worker.path());
    variables.emplace_back("STROBE_RECORD_WORKER_COMMAND", CommandPath().string());
    variables.emplace_back("STROBE_RECORD_WORKER_FALLBACK", "in_process");
  }
  if (const int filters = CountCallFilters(); filters > 0)
    variables.emplace_back(kRecordingFiltersVariable, absl::StrCat(filters));
  if (std::getenv("STROBE_EXPORT_PERIOD_S") == nullptr)
    variables.emplace_back("STROBE_RECORD_EXPORT_PERIOD_S", absl::StrCat(ExportPeriodS(options)));
  if (std::getenv("STROBE_EXPORT_ON_SIGNAL") == nullptr)
    variables.emplace_back("STROBE_RECORD_EXPORT_ON_SIGNAL", "1");
  if (std::getenv("STROBE_TIMESTAMPS") == nullptr)
    variables.emplace_back("STROBE_RECORD_TIMESTAMPS", "1");
  if (std::getenv("STROBE_MAX_OVERHEAD") == nullptr)
    variables.emplace_back("STROBE_RECORD_MAX_OVERHEAD", kMaxOverhead);
  return variables;
}

std::int64_t UnixNs() {
  return std::chrono::nanoseconds(std::chrono::system_clock::now().time_since_epoch()).count();
}

// The CPU time of all processes below this one that have ended and whose status their parents have
// collected.
std::int64_t UsedByChildrenNs() {
  rusage used{};
  getrusage(RUSAGE_CHILDREN, &used);
  const auto sum_us = std::chrono::seconds(used.ru_utime.tv_sec + used.ru_stime.tv_sec) +
                      std::chrono::microseconds(used.ru_utime.tv_usec + used.ru_stime.tv_usec);
  return std::chrono::nanoseconds(sum_us).count();
}

class PreloadedRecording {
 public:
  PreloadedRecording(const RecordOptions& options, RecordingOutput& output, Child& child)
      : options_(options), output_(output), child_(child) {}

  // Delivers the profile. The child may go on. Returns 0 if the program was run.
  int Run(const RecordedProgram& program, const std::string& library);

 private:
  void BeginWorker();
  // Returns 0, or the status to exit with if the command cannot be recorded at all.
  int BeginOutside(const RecordedProgram& program);
  // Until all has ended, or the asked time is over.
  void Attend();
  // Now and then, meanwhile.
  void Update();
  // Takes what the programs have exported when the time was over.
  void TakeLast();
  // If not all profiles could be read, they are left where they are.
  void KeepUnread(bool has_all);
  // Delivers what has been taken so far. Nothing if the delivery before has not ended: the next one
  // has both.
  void EndPeriod();
  void BeginDelivery();
  // Until it has ended. The program gets its signals meanwhile.
  void AwaitDelivery();

  const RecordOptions& options_;
  RecordingOutput& output_;
  const std::int64_t begin_unix_ns_ = UnixNs();
  std::unique_ptr<RecordedProfiles> profiles_ =
      std::make_unique<RecordedProfiles>(output_, begin_unix_ns_);
  std::uint64_t samples_before_ = 0;  // those that earlier periods have delivered
  BackgroundDelivery delivery_;       // of the period before
  Child& child_;
  RecordingFolder folder_;
  OutsideRecording outside_{options_, folder_.private_path()};
  RecordingWorker worker_{options_.mode == RecordingMode::kWorker ? folder_.private_path() : ""};
  const RecordedProcesses processes_{absl::StrCat(kRecordingVariable, "=", folder_.shared_path())};
  std::optional<MappedFiles> files_;
  SteadyClock::time_point begin_;
  SteadyClock::time_point until_ = SteadyClock::time_point::max();
  bool has_said_what_runs_ = false;
};

void PreloadedRecording::Update() {
  if (!child_.has_ended()) files_->Update();
  profiles_->Take(folder_.path());
  output_.Print(std::chrono::duration<double>(SteadyClock::now() - begin_).count(),
                samples_before_ + profiles_->samples() + outside_.samples());
  if (!child_.has_ended() || has_said_what_runs_) return;
  const std::string children = processes_.RunningChildren();
  // Workers end by themselves. One that does not is not waited for any longer than kLongestExport.
  if (children.empty()) return child_.StopFollowing();
  SayWhatRuns(output_, children);
  has_said_what_runs_ = true;
}

// A program that has not exported after kLongestExport is not waited for.
void PreloadedRecording::TakeLast() {
  const auto over_ns = std::chrono::nanoseconds(UnixNs()) - (SteadyClock::now() - until_);
  const SteadyClock::time_point latest = SteadyClock::now() + kLongestExport;
  outside_.End();
  const std::vector<std::uint64_t> programs = processes_.Programs();
  const auto has_all = [&] {
    profiles_->Take(folder_.path());
    return std::ranges::all_of(programs, [&](std::uint64_t program) {
      return profiles_->HasUntil(program, over_ns.count()) || !processes_.IsOne(program);
    });
  };
  child_.StopFollowing();
  while (!has_all() && SteadyClock::now() < latest) {
    const bool has_ended = child_.Await(
        kLastTakePeriod, [] {}, SteadyClock::now() + kLastTakePeriod);
    if (has_ended) std::this_thread::sleep_for(kLastTakePeriod);  // others go on
  }
  KeepUnread(profiles_->Take(folder_.path()));
}

void PreloadedRecording::EndPeriod() {
  const bool is_busy = delivery_.IsBusy();
  profiles_->Take(folder_.path());
  if (is_busy) return;
  const std::uint64_t samples = profiles_->samples() + outside_.samples();
  profiles_->SetOutside(outside_.Take());
  if (profiles_->empty()) return;
  samples_before_ += samples;
  if (!delivery_.has_begun()) output_.BeginPeriods();
  BeginDelivery();
}

void PreloadedRecording::BeginDelivery() {
  OutsideRefusal refused = outside_.TakeRefusal();
  profiles_->SetRefused(refused.programs, std::move(refused.reason));
  profiles_->SetAsked(AskedBesideCpuTime(options_));
  const std::shared_ptr<RecordedProfiles> full = std::move(profiles_);
  profiles_ = std::make_unique<RecordedProfiles>(output_, begin_unix_ns_);
  const auto id = static_cast<std::uint64_t>(child_.id());
  delivery_.Begin([full, id] { return full->Finish(id); });
}

void PreloadedRecording::AwaitDelivery() {
  delivery_.Await([this] { child_.Update(); });
}

void PreloadedRecording::Attend() {
  const SteadyClock::duration period =
      std::chrono::nanoseconds(std::llround(PeriodS(options_) * 1e9));
  const bool has_periods = period > SteadyClock::duration::zero();
  for (auto next = has_periods ? begin_ + period : SteadyClock::time_point::max();;
       next += period) {
    if (child_.Await(
            kTakePeriod, [this] { Update(); }, std::min(next, until_)))
      break;
    if (next >= until_) return TakeLast();
    EndPeriod();
  }
  worker_.End();
  if (options_.mode == RecordingMode::kWorker) processes_.AwaitWorkers(kLongestExport);
  outside_.End();
  KeepUnread(profiles_->Take(folder_.path()));
}

void PreloadedRecording::KeepUnread(bool has_all) {
  if (has_all) return;
  folder_.Keep();
  output_.Fail(absl::StrCat("profiles of processes cannot be opened, and are left: strobe merge ",
                            folder_.path(), "/*.pb.gz -o FILE; strobe symbolize names them"));
}

int PreloadedRecording::BeginOutside(const RecordedProgram& program) {
  const bool is_outside = program.file.LoadsNoLibrary() && !program.file.has_other_rights;
  if (is_outside) {
    const absl::Status status = outside_.AttachAtExec(static_cast<std::uint32_t>(child_.id()));
    if (!status.ok()) return output_.Fail(std::string(status.message()));
  }
  outside_.Begin();
  return 0;
}

// A worker ends its recordings when the variable of its own process says so.
void PreloadedRecording::BeginWorker() {
  if (options_.duration_s > 0)
    setenv(kRecordingUntilVariable, UntilText(until_).c_str(), /*replace=*/1);
  worker_.Begin();
}

int PreloadedRecording::Run(const RecordedProgram& program, const std::string& library) {
  for (const std::string& folder : RecordingFolder::OfKilled()) {
    output_.Say(absl::StrCat("a recording was killed, and its profiles are left: strobe merge ",
                             folder, "/*.pb.gz -o FILE; strobe symbolize names them"));
  }
  if (std::getenv("STROBE_KEEP_LAST_S") != nullptr)
    output_.Say("STROBE_KEEP_LAST_S: not for a recording, which has all of the time");
  if (!folder_.is_open()) return output_.Fail("cannot make a temporary directory");
  if (!options_.until_parent) child_.FollowTree();
  begin_ = SteadyClock::now();
  if (options_.duration_s > 0)
    until_ = begin_ + std::chrono::nanoseconds(std::llround(options_.duration_s * 1e9));
  int error = child_.Fork({.path = program.path,
                           .arguments = options_.command,
                           .variables = VariablesFor(options_, library, folder_, worker_, until_)});
  if (error == 0 && options_.mode == RecordingMode::kWorker) BeginWorker();
  if (error == 0) {
    if (const int status = BeginOutside(program); status != 0) return status;
    error = child_.Run();
  }
  if (error != 0)
    return output_.Fail(absl::StrCat(program.path, ": ", std::strerror(error)), kCannotRun);
  if (program.file.has_other_rights) outside_.Attach(static_cast<std::uint32_t>(child_.id()));
  files_.emplace(child_.id());
  Attend();
  const bool has_delivered = delivery_.has_begun();
  AwaitDelivery();
  profiles_->SetOutside(outside_.Take());
  if (!has_delivered) profiles_->SetUsed(UsedByChildrenNs());
  if (!has_delivered || !profiles_->empty()) BeginDelivery();
  AwaitDelivery();
  return 0;
}

}  // namespace

int RunUnrecorded(const RecordOptions& options, RecordingOutput& output) {
  const RecordedProgram program = FindProgram(options.command[0], RecordedBy::kNothing);
  if (!program.refusal.empty()) return output.Fail(program.refusal, program.status);
  Child child;
  int error = child.Fork({.path = program.path, .arguments = options.command});
  if (error == 0) error = child.Run();
  if (error != 0)
    return output.Fail(absl::StrCat(program.path, ": ", std::strerror(error)), kCannotRun);
  child.Await(kTakePeriod, [] {});
  return child.EndAsChildDid();
}

int RecordPreloaded(const RecordOptions& options, RecordingOutput& output) {
  const RecordedProgram program = FindProgram(options.command[0], RecordedBy::kPreload);
  const bool needs_library = options.mode != RecordingMode::kChosen || options.allocations ||
                             options.locks || options.exceptions || options.wall_hz;
  if (program.fits_perf && !needs_library) {
    output.Say(absl::StrCat(program.refusal, ": perf events record it"));
    // The loader of another C library may end the program because of one that is made for glibc.
    if (program.file.kind == ProgramKind::kOtherLibrary) return RecordPerf(options, output);
  } else if (!program.refusal.empty()) {
    const char* const instead =
        program.fits_perf ? "; strobe record --perf profiles it from outside, by perf events" : "";
    return output.Fail(absl::StrCat(program.refusal, instead), program.status);
  }
  if (CommandPath().empty())
    return output.Fail("/proc/self/exe, which leads to the libraries to preload, cannot be read");
  const std::string library = FindLibrary(LibraryFor(options));
  if (library.empty() || library.find_first_of(": ") != std::string::npos) {
    return output.Fail(absl::StrCat(
        LibraryFor(options),
        " is not where this command looks for it (src/preload of its build, of which ninja makes "
        "all, or the installed libraries), or its path has a colon or a space"));
  }
  Child child;
  const int status = PreloadedRecording(options, output, child).Run(program, library);
  if (status != 0) return status;
  child.StopFollowing();
  child.Await(kTakePeriod, [] {});
  return child.EndAsChildDid();
}

}  // namespace strobe::internal
