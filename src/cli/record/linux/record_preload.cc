// strobe record CMD: the command, with a library preloaded that profiles it.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "child.h"
#include "mapped_files.h"
#include "record/record.h"
#include "record_profile.h"
#include "record_program.h"
#include "recorded_workers.h"

namespace strobe::internal {
namespace {

// A process that a signal ends leaves what it has exported: at most this much is missing.
constexpr int kExportPeriodS = 5;
// How long workers may export after the program's end. Those of children that live on do not end.
constexpr std::chrono::milliseconds kLongestExport(3000);
constexpr const char* kOutputVariable = "STROBE_RECORD_OUTPUT_DIRECTORY";
// By which the workers of recorded programs are found: they have none that begins STROBE_RECORD_.
constexpr const char* kRecordingVariable = "STROBE_RECORDING";
constexpr std::chrono::milliseconds kTakePeriod(1000);
// More than a profiler takes that always runs: a recorded program often ends soon.
constexpr const char* kMaxOverhead = "0.01";

std::filesystem::path CommandPath() {
  std::error_code error;
  return std::filesystem::read_symlink("/proc/self/exe", error);
}

// The library beside the command: see STROBE_LIBRARY_FOLDERS in meson.build.
std::string FindLibrary(bool has_allocations) {
  const char* const name =
      has_allocations ? "libstrobe-preload-allocations.so" : "libstrobe-preload.so";
  std::error_code error;
  const std::filesystem::path command = CommandPath();
  const std::vector<std::string> folders = absl::StrSplit(STROBE_LIBRARY_FOLDERS, ':');
  for (const std::string& folder : folders) {
    const std::filesystem::path path = (command.parent_path() / folder / name).lexically_normal();
    if (std::filesystem::exists(path, error)) return path.string();
  }
  return {};
}

// A folder that the recorded processes export to. They know it as a file of this process, so those
// that outlive this process leave nothing behind.
class Folder {
 public:
  Folder() {
    std::error_code error;
    const std::filesystem::path parent = std::filesystem::temp_directory_path(error);
    std::string pattern = (error ? std::filesystem::path("/tmp") : parent) / "strobe-record-XXXXXX";
    if (mkdtemp(pattern.data()) == nullptr) return;
    path_ = pattern;
    file_ = open(path_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  }
  ~Folder() {
    if (file_ >= 0) close(file_);
    std::error_code error;
    if (!path_.empty()) std::filesystem::remove_all(path_, error);
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;

  [[nodiscard]] bool is_open() const { return file_ >= 0; }
  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] std::string shared_path() const {
    return absl::StrCat("/proc/", getpid(), "/fd/", file_);
  }

 private:
  std::string path_;
  int file_ = -1;
};

using Variables = std::vector<std::pair<std::string, std::string>>;

Variables VariablesFor(const RecordOptions& options, const std::string& library,
                       const Folder& folder) {
  const char* const preloaded = std::getenv("LD_PRELOAD");
  const bool has_others = preloaded != nullptr && *preloaded != '\0';
  Variables variables{{"LD_PRELOAD", has_others ? absl::StrCat(library, ":", preloaded) : library},
                      {kOutputVariable, folder.shared_path()},
                      {kRecordingVariable, folder.shared_path()},
                      {"STROBE_RECORD_MAX_FILES", "1000000"},
                      // The command finds the names, when the program has ended.
                      {"STROBE_RECORD_SYMBOLS", "none"}};
  if (options.hz)
    variables.emplace_back("STROBE_RECORD_CPU_FREQUENCY_HZ", absl::StrCat(*options.hz));
  if (options.wall_hz)
    variables.emplace_back("STROBE_RECORD_WALL_FREQUENCY_HZ", absl::StrCat(*options.wall_hz));
  if (options.uses_worker) {
    variables.emplace_back("STROBE_RECORD_WORKER", "1");
    variables.emplace_back("STROBE_RECORD_WORKER_COMMAND", CommandPath().string());
    variables.emplace_back("STROBE_RECORD_WORKER_FALLBACK", "in_process");
  }
  if (std::getenv("STROBE_EXPORT_PERIOD_S") == nullptr)
    variables.emplace_back("STROBE_RECORD_EXPORT_PERIOD_S", absl::StrCat(kExportPeriodS));
  if (std::getenv("STROBE_EXPORT_ON_SIGNAL") == nullptr)
    variables.emplace_back("STROBE_RECORD_EXPORT_ON_SIGNAL", "1");
  if (std::getenv("STROBE_TIMESTAMPS") == nullptr)
    variables.emplace_back("STROBE_RECORD_TIMESTAMPS", "1");
  if (std::getenv("STROBE_MAX_OVERHEAD") == nullptr)
    variables.emplace_back("STROBE_RECORD_MAX_OVERHEAD", kMaxOverhead);
  return variables;
}

// How long the recording has lasted, in seconds.
double SecondsSince(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

// Returns 0 if the program was run.
int Record(const RecordOptions& options, const std::string& program, const std::string& library,
           RecordingOutput& output, Child& child) {
  const Folder folder;
  if (!folder.is_open()) return output.Fail("cannot make a temporary directory");
  int error = child.Fork({.path = program,
                          .arguments = options.command,
                          .variables = VariablesFor(options, library, folder)});
  if (error == 0) error = child.Run();
  if (error != 0) return output.Fail(absl::StrCat(program, ": ", std::strerror(error)), kCannotRun);
  RecordedProfiles profiles(output);
  const auto begin = std::chrono::steady_clock::now();
  MappedFiles files(child.id());
  child.Await(kTakePeriod, [&] {
    files.Update();
    profiles.Take(folder.path());
    output.Print(SecondsSince(begin), profiles.samples());
  });
  if (options.uses_worker)
    AwaitWorkers(absl::StrCat(kRecordingVariable, "=", folder.shared_path()), kLongestExport);
  profiles.Take(folder.path());
  profiles.Finish(static_cast<std::uint64_t>(child.id()));
  return 0;
}

}  // namespace

int RecordPreloaded(const RecordOptions& options, RecordingOutput& output) {
  const RecordedProgram program = FindProgram(options.command[0], RecordedBy::kPreload);
  if (!program.refusal.empty()) return output.Fail(program.refusal, program.status);
  const std::string library = FindLibrary(options.allocations);
  if (library.empty() || library.find_first_of(": ") != std::string::npos) {
    return output.Fail(
        "the library to preload is not where this command looks for it (src/preload of its build, "
        "or the installed libraries), or its path has a colon or a space");
  }
  Child child;
  const int status = Record(options, program.path, library, output, child);
  return status == 0 ? child.EndAsChildDid() : status;
}

}  // namespace strobe::internal
