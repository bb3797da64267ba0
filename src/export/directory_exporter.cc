#include "strobe/export/directory_exporter.h"

#include <algorithm>
#include <atomic>
#include <charconv>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "strobe/base/memory_guard.h"
#include "strobe/core/thread_info.h"
#include "strobe/encode/encoder.h"
#include "strobe/export/profile_directories.h"

namespace strobe {
namespace {

// The parts of a file's name.
struct ProfileName {
  std::uint64_t process_id = 0;
  std::uint64_t sequence = 0;
  bool is_temporary = false;
};

// Takes a decimal number off the front of `text`; false if there is none.
bool ConsumeNumber(std::string_view& text, std::uint64_t& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc()) return false;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return true;
}

bool Consume(std::string_view& text, std::string_view prefix) {
  if (!text.starts_with(prefix)) return false;
  text.remove_prefix(prefix.size());
  return true;
}

// Removes ".<number>.tmp" from the end of `text`; false if there is none.
bool ConsumeTemporaryEnd(std::string_view& text) {
  if (!text.ends_with(".tmp")) return false;
  text.remove_suffix(4);
  const std::size_t dot = text.rfind('.');
  if (dot == std::string_view::npos) return false;
  std::string_view digits = text.substr(dot + 1);
  std::uint64_t token = 0;
  if (!ConsumeNumber(digits, token) || !digits.empty()) return false;
  text = text.substr(0, dot);
  return true;
}

// Reads "<program>.<process id>.<sequence><suffix>" and ".<program>.<process
// id>.<sequence><suffix>.<number>.tmp", where the suffix is `own_suffix` or that of any encoder.
bool ParseName(std::string_view text, std::string_view program, std::string_view own_suffix,
               ProfileName& name) {
  name.is_temporary = Consume(text, ".");
  if (name.is_temporary && !ConsumeTemporaryEnd(text)) return false;
  return Consume(text, program) && Consume(text, ".") && ConsumeNumber(text, name.process_id) &&
         Consume(text, ".") && ConsumeNumber(text, name.sequence) &&
         (text == own_suffix ||
          std::ranges::find(kProfileFileSuffixes, text) != kProfileFileSuffixes.end());
}

// A program's name as part of a file name: no path, no hidden file, and no character that a
// terminal or a shell interprets.
std::string FileNamePart(std::string_view program) {
  std::string result = ValidUtf8(program.substr(0, DirectoryExporter::kMaxProgramBytes));
  for (char& c : result) {
    const auto byte = static_cast<unsigned char>(c);
    const bool is_plain =
        (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || byte >= 0x80;
    if (!is_plain && c != '.' && c != '_' && c != '-' && c != '+') c = '_';
  }
  if (result.empty()) return "program";
  if (result.front() == '.') result.front() = '_';
  return result;
}

// An entry of the directory that belongs to this program and user.
struct OwnFile {
  DirectoryFile file;
  ProfileName parsed;
};

bool IsOlder(const OwnFile& a, const OwnFile& b) {
  if (a.file.modified_ns != b.file.modified_ns) return a.file.modified_ns < b.file.modified_ns;
  return a.parsed.sequence < b.parsed.sequence;
}

// Hard to foresee, and different for every profiler of the process. A name that is taken in spite
// of this is not replaced.
std::string TemporaryName(const std::string& name) {
  static std::atomic<std::uint64_t> counter{0};
  const auto now = std::chrono::steady_clock::now().time_since_epoch().count();
  const std::uint64_t token =
      static_cast<std::uint64_t>(now) + counter.fetch_add(1, std::memory_order_relaxed);
  return absl::StrCat(".", name, ".", token, ".tmp");
}

// One export.
class FileExport {
 public:
  FileExport(const ProfileDirectory& directory, const ExportRequest& request)
      : directory_(directory),
        program_(FileNamePart(request.profile.program)),
        suffix_(request.file_suffix),
        process_id_(request.profile.process_id),
        sequence_(request.profile.sequence) {}

  // Writes all of the bytes, and sets path(); or leaves no file.
  absl::Status Write(std::string_view bytes);
  void RemoveOld(std::uint64_t max_files, std::uint64_t max_bytes) const;

  [[nodiscard]] std::string path() const { return directory_.PathOf(name_); }

 private:
  [[nodiscard]] std::string Name(std::uint64_t sequence) const {
    return absl::StrCat(program_, ".", process_id_, ".", sequence, suffix_);
  }
  [[nodiscard]] absl::StatusOr<std::unique_ptr<TemporaryFile>> WriteTemporary(
      std::string_view bytes) const;
  absl::Status Rename(TemporaryFile& temporary);
  [[nodiscard]] std::vector<OwnFile> ListOwnFiles() const;

  const ProfileDirectory& directory_;
  const std::string program_;
  const std::string suffix_;
  const std::uint64_t process_id_;
  const std::uint64_t sequence_;
  std::string name_;
};

absl::StatusOr<std::unique_ptr<TemporaryFile>> FileExport::WriteTemporary(
    std::string_view bytes) const {
  absl::StatusOr<std::unique_ptr<TemporaryFile>> temporary;
  for (int attempt = 0; attempt < DirectoryExporter::kMaxNameAttempts; ++attempt) {
    temporary = directory_.Write(TemporaryName(Name(sequence_)), bytes);
    if (!absl::IsAlreadyExists(temporary.status())) break;
  }
  return temporary;
}

absl::Status FileExport::Write(std::string_view bytes) {
  absl::StatusOr<std::unique_ptr<TemporaryFile>> temporary = WriteTemporary(bytes);
  return temporary.ok() ? Rename(**temporary) : temporary.status();
}

absl::Status FileExport::Rename(TemporaryFile& temporary) {
  std::uint64_t sequence = sequence_;
  absl::Status status;
  for (int attempt = 0; attempt < DirectoryExporter::kMaxNameAttempts; ++attempt) {
    name_ = Name(sequence);
    status = temporary.RenameTo(name_);
    if (!absl::IsAlreadyExists(status)) break;
    for (const OwnFile& own : ListOwnFiles()) {
      if (!own.parsed.is_temporary && own.parsed.process_id == process_id_)
        sequence = std::max(sequence, own.parsed.sequence);
    }
    ++sequence;
  }
  return status;
}

std::vector<OwnFile> FileExport::ListOwnFiles() const {
  const auto parse = [this](std::string_view name, ProfileName& parsed) {
    return ParseName(name, program_, suffix_, parsed);
  };
  std::vector<OwnFile> files;
  ProfileName parsed;
  for (DirectoryFile& file :
       directory_.List(DirectoryExporter::kMaxDirectoryEntries,
                       [&](std::string_view name) { return parse(name, parsed); })) {
    parse(file.name, parsed);
    files.push_back({std::move(file), parsed});
  }
  return files;
}

void FileExport::RemoveOld(std::uint64_t max_files, std::uint64_t max_bytes) const {
  std::vector<OwnFile> files = ListOwnFiles();
  std::sort(files.begin(), files.end(), IsOlder);
  std::uint64_t count = 0, bytes = 0;
  for (const OwnFile& own : files) {
    if (own.parsed.is_temporary) continue;
    ++count;
    bytes += own.file.bytes;
  }
  const std::chrono::nanoseconds now = std::chrono::system_clock::now().time_since_epoch();
  const std::int64_t stale_ns =
      (now - std::chrono::seconds(DirectoryExporter::kStaleTemporarySeconds)).count();
  for (const OwnFile& own : files) {
    const bool is_excess = !own.parsed.is_temporary && own.file.name != name_ &&
                           (count > max_files || bytes > max_bytes);
    const bool is_stale = own.parsed.is_temporary && own.file.modified_ns < stale_ns;
    if (!is_excess && !is_stale) continue;
    // Where a file cannot be removed, the next one goes in its place.
    if (directory_.Remove(own.file.name) && is_excess) {
      --count;
      bytes -= own.file.bytes;
    }
  }
}

// Closes a directory after its use, unless it may be held.
class LetGo {
 public:
  explicit LetGo(std::unique_ptr<ProfileDirectory>& directory) : directory_(directory) {}
  ~LetGo() {
    if (directory_ != nullptr && !directory_->IsThere()) directory_.reset();
  }
  LetGo(const LetGo&) = delete;
  LetGo& operator=(const LetGo&) = delete;

 private:
  std::unique_ptr<ProfileDirectory>& directory_;
};

// An error of the system (a name that is too long, a file that is too large for the disk) does not
// refuse the profile: the program may mend the cause, so the profile waits.
absl::Status WithoutRefusal(const absl::Status& status) {
  return RefusesProfile(status) ? absl::FailedPreconditionError(status.message()) : status;
}

}  // namespace

DirectoryExporter::DirectoryExporter(const ProfileDirectories& directories,
                                     const ExporterOptions& options)
    : directories_(&directories),
      directory_(options.directory->empty() ? std::string()
                                            : directories.AbsolutePath(*options.directory)),
      max_files_(static_cast<std::uint64_t>(std::max<std::int64_t>(*options.max_files, 0))),
      max_bytes_(static_cast<std::uint64_t>(std::max<std::int64_t>(*options.max_bytes, 0))) {
  while (directory_.size() > 1 && directory_.back() == '/') directory_.pop_back();
}

absl::StatusOr<const ProfileDirectory*> DirectoryExporter::Hold(Opened opened, Held& kept) {
  std::unique_ptr<ProfileDirectory>& held = kept.directory;
  if (opened.ok()) {
    held = *std::move(opened);
  } else if (held == nullptr || !held->IsThere()) {
    return opened.status();
  }
  return held.get();
}

absl::StatusOr<const ProfileDirectory*> DirectoryExporter::Open() {
  absl::StatusOr<const ProfileDirectory*> directory =
      Hold(directories_->OpenExisting(directory_), held_);
  return directory.ok() ? directory : Hold(directories_->Open(directory_), held_);
}

absl::StatusOr<const ProfileDirectory*> DirectoryExporter::OpenWindows() {
  const absl::StatusOr<const ProfileDirectory*> around = Open();
  if (!around.ok()) return around;
  return Hold((*around)->OpenFolder(std::string(kWindowDirectory)), held_windows_);
}

absl::Status DirectoryExporter::Check() {
  const LetGo let_go(held_.directory);
  const absl::StatusOr<const ProfileDirectory*> directory = Open();
  absl::Status status = directory.status();
  if (status.ok()) status = (*directory)->Write(TemporaryName("check"), "").status();
  if (status.ok() || absl::IsResourceExhausted(status)) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("exporter.directory (STROBE_OUTPUT_DIRECTORY): ", status.message()));
}

absl::StatusOr<std::string> DirectoryExporter::Export(const ExportRequest& request) {
  if (directory_.empty()) return absl::InvalidArgumentError("exporter.directory is empty");
  if (request.file_suffix.empty() || request.file_suffix.find('/') != std::string_view::npos) {
    return absl::InvalidArgumentError(
        absl::StrCat("not a file suffix: \"", std::string(request.file_suffix), "\""));
  }
  const bool is_window = !request.profile.window.empty();
  Held& held = is_window ? held_windows_ : held_;
  const LetGo let_go_around(held_.directory);
  const LetGo let_go(held.directory);
  const absl::StatusOr<const ProfileDirectory*> directory = is_window ? OpenWindows() : Open();
  if (!directory.ok()) return WithoutRefusal(directory.status());
  FileExport file(**directory, request);
  absl::Status status = file.Write(request.bytes);
  if (absl::IsNotFound(status)) held.directory.reset();  // some systems do not say that it is gone
  if (!status.ok()) return WithoutRefusal(status);
  // The profile is delivered, even if there is no memory for what follows.
  std::string path;
  static_cast<void>(internal::HasMemoryFor([&] {
    file.RemoveOld(max_files_, max_bytes_);
    path = file.path();
  }));
  return path;
}

}  // namespace strobe
