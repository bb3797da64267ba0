#include "record_program.h"

#include <elf.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string_view>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "ui/exit_status.h"

namespace strobe::internal {
namespace {

constexpr std::string_view kDefaultPath = "/usr/local/bin:/usr/bin:/bin";

struct Refusal {
  std::string sentence;  // empty if it can be recorded
  bool fits_perf = false;
};

// Why nothing can be preloaded into a file of that kind, in half a sentence.
Refusal RefusalOfKind(ProgramKind kind) {
  switch (kind) {
    case ProgramKind::kIncomplete: return {"is no complete program"};
    case ProgramKind::k32Bit: return {"is a 32-bit program"};
    case ProgramKind::kOtherArchitecture: return {"is a program for another architecture"};
    case ProgramKind::kOtherLibrary: return {"is linked with another C library than glibc", true};
    case ProgramKind::kStatic: return {"is statically linked", true};
    case ProgramKind::kUnknown:
    case ProgramKind::kPreloadable: break;
  }
  return {};
}

// Why the program at `path`, or what interprets it, cannot be recorded that way.
Refusal RefusalOf(const std::string& path, const ProgramFile& program, RecordedBy how) {
  const std::string judged =
      program.interpreter_path().empty() ? path : std::string(program.interpreter_path());
  if (program.has_other_rights && geteuid() != 0) {
    return {absl::StrCat(judged,
                         " runs with more rights than its user, who may not look into it; to "
                         "record it, run strobe record as root")};
  }
  if (how == RecordedBy::kPerfEvents) return {};
  Refusal refusal = program.has_other_rights ? Refusal{"runs with other rights than its user", true}
                                             : RefusalOfKind(program.kind);
  if (!refusal.sentence.empty())
    refusal.sentence = absl::StrCat(judged, " ", refusal.sentence, ", so nothing can be preloaded");
  return refusal;
}

bool IsExecutableFile(const std::string& path, int& error) {
  struct stat status {};
  if (stat(path.c_str(), &status) != 0) {
    error = errno;
    return false;
  }
  const bool is_file = S_ISREG(status.st_mode);
  if (is_file && access(path.c_str(), X_OK) == 0) return true;
  error = is_file ? errno : S_ISDIR(status.st_mode) ? EISDIR : EACCES;
  return false;
}

// Why the file at `path` is no program, and what to do; empty if the system's `error` says it best.
std::string WhyNoProgram(const std::string& path, int error) {
  if (error == EISDIR) return absl::StrCat(path, " is a directory, and no program");
  std::error_code ignored;
  if (error != EACCES || !std::filesystem::is_regular_file(path, ignored)) return {};
  std::array<char, SELFMAG> head{};
  std::ifstream file(path, std::ios::binary);
  file.read(head.data(), head.size());
  const std::string_view text(head.data(), static_cast<std::size_t>(file.gcount()));
  if (text.starts_with("#!") || text == std::string_view(ELFMAG, SELFMAG))
    return absl::StrCat(path, " may not be executed: chmod +x ", path);
  return absl::StrCat(path,
                      " is no program: record what a compiler makes of it, or the interpreter that "
                      "runs it");
}

RecordedProgram Refused(std::string sentence, int status) {
  return {.path = {}, .refusal = std::move(sentence), .status = status};
}

RecordedProgram Found(std::string path) {
  return {.path = std::move(path), .refusal = {}, .status = kCannotRun};
}

RecordedProgram FindInPath(const std::string& name) {
  const char* const variable = std::getenv("PATH");
  std::string_view folders = variable != nullptr ? variable : kDefaultPath;
  int first_error = 0;
  for (;;) {
    const std::string_view folder = folders.substr(0, folders.find(':'));
    std::string path = folder.empty() ? name : absl::StrCat(std::string(folder), "/", name);
    int error = 0;
    if (IsExecutableFile(path, error)) return Found(std::move(path));
    if (error == EACCES && first_error == 0) first_error = error;
    if (folder.size() == folders.size()) break;
    folders.remove_prefix(folder.size() + 1);
  }
  if (first_error != 0) return Refused(absl::StrCat(name, ": permission denied"), kCannotRun);
  int error = 0;
  const bool is_here = IsExecutableFile(name, error);
  if (std::string why = WhyNoProgram(name, error); !why.empty())
    return Refused(std::move(why), kCannotRun);
  const std::string advice = is_here ? absl::StrCat("; did you mean ./", name, "?") : "";
  return Refused(absl::StrCat(name, ": command not found", advice), kNotFound);
}

RecordedProgram Find(const std::string& name) {
  if (name.empty()) return Refused("the program's name is empty", kNotFound);
  if (name.find('/') == std::string::npos) return FindInPath(name);
  int error = 0;
  if (IsExecutableFile(name, error)) return Found(name);
  if (std::string why = WhyNoProgram(name, error); !why.empty())
    return Refused(std::move(why), kCannotRun);
  return Refused(absl::StrCat(name, ": ", std::strerror(error)),
                 error == ENOENT || error == ENOTDIR ? kNotFound : kCannotRun);
}

}  // namespace

RecordedProgram FindProgram(const std::string& name, RecordedBy how) {
  RecordedProgram program = Find(name);
  if (!program.refusal.empty() || how == RecordedBy::kNothing) return program;
  program.file = JudgeProgramFile(program.path.c_str());
  Refusal refusal = RefusalOf(program.path, program.file, how);
  program.refusal = std::move(refusal.sentence);
  program.fits_perf = refusal.fits_perf;
  return program;
}

}  // namespace strobe::internal
