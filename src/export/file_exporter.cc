#include "strobe/export/file_exporter.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <ctime>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "strobe/core/thread_info.h"

namespace strobe {
namespace {

constexpr mode_t kFileMode = 0600;
constexpr mode_t kDirectoryMode = 0700;

absl::Status SystemError(int error, std::string_view doing, const std::string& path) {
  return absl::ErrnoToStatus(error, absl::StrCat(absl::string_view(doing.data(), doing.size()), " ", path));
}

class FileDescriptor {
 public:
  explicit FileDescriptor(int number = -1) : number_(number) {}
  FileDescriptor(const FileDescriptor&) = delete;
  FileDescriptor& operator=(const FileDescriptor&) = delete;
  FileDescriptor(FileDescriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  FileDescriptor& operator=(FileDescriptor&& other) noexcept {
    std::swap(number_, other.number_);
    return *this;
  }
  ~FileDescriptor() { Close(); }

  [[nodiscard]] int get() const { return number_; }
  // 0 or errno: some file systems say only here that the disk is full.
  int Close() { return number_ >= 0 && close(std::exchange(number_, -1)) != 0 && errno != EINTR ? errno : 0; }

 private:
  int number_;
};

// What an entry of the directory is to this program.
struct ProfileName {
  std::uint64_t process_id = 0;
  std::uint64_t sequence = 0;
  bool is_temporary = false;
};

// Takes a decimal number off the front of `text`; false where there is none.
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

// Reads "<program>.<process id>.<sequence><suffix>" and ".<program>.<process id>.<sequence><suffix>.<number>.tmp".
bool ParseName(std::string_view text, std::string_view program, std::string_view suffix, ProfileName& name) {
  name.is_temporary = Consume(text, ".");
  std::uint64_t token = 0;
  return Consume(text, program) && Consume(text, ".") && ConsumeNumber(text, name.process_id) && Consume(text, ".") &&
         ConsumeNumber(text, name.sequence) && Consume(text, suffix) &&
         (name.is_temporary ? Consume(text, ".") && ConsumeNumber(text, token) && text == ".tmp" : text.empty());
}

// A program's name as part of a file name: no path, no hidden file, nothing that a terminal or a shell would stumble over.
std::string FileNamePart(std::string_view program) {
  std::string result = ValidUtf8(program.substr(0, FileExporter::kMaxProgramBytes));
  for (char& c : result) {
    const auto byte = static_cast<unsigned char>(c);
    const bool is_plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || byte >= 0x80;
    if (!is_plain && c != '.' && c != '_' && c != '-' && c != '+') c = '_';
  }
  if (result.empty()) return "program";
  if (result.front() == '.') result.front() = '_';
  return result;
}

// The entries of a directory that belong to this program and user.
struct OwnFile {
  std::string name;
  ProfileName parsed;
  std::uint64_t bytes = 0;
  timespec modified = {};
};

bool IsOlder(const OwnFile& a, const OwnFile& b) {
  if (a.modified.tv_sec != b.modified.tv_sec) return a.modified.tv_sec < b.modified.tv_sec;
  if (a.modified.tv_nsec != b.modified.tv_nsec) return a.modified.tv_nsec < b.modified.tv_nsec;
  return a.parsed.sequence < b.parsed.sequence;
}

// One export: the names, and the directory held open, so that all of it happens in the same place.
class FileExport {
 public:
  FileExport(const std::string& directory, const ExportRequest& request)
      : directory_(directory),
        program_(FileNamePart(request.profile.program)),
        suffix_(request.file_suffix),
        process_id_(request.profile.process_id),
        sequence_(request.profile.sequence) {}

  absl::Status OpenDirectory();
  // Sets name(). Whole or not at all.
  absl::Status Write(std::string_view bytes);
  void RemoveOld(std::uint64_t max_files, std::uint64_t max_bytes) const;

  [[nodiscard]] std::string path() const { return Path(name_); }

 private:
  [[nodiscard]] std::string Path(const std::string& name) const { return absl::StrCat(directory_, "/", name); }
  [[nodiscard]] std::string Name(std::uint64_t sequence) const { return absl::StrCat(program_, ".", process_id_, ".", sequence, suffix_); }
  absl::StatusOr<FileDescriptor> CreateTemporary(std::string& name) const;
  absl::Status Rename(const std::string& temporary);
  [[nodiscard]] std::vector<OwnFile> ListOwnFiles() const;

  const std::string& directory_;
  const std::string program_;
  const std::string suffix_;
  const std::uint64_t process_id_;
  const std::uint64_t sequence_;
  std::string name_;
  FileDescriptor directory_descriptor_;
};

absl::Status FileExport::OpenDirectory() {
  // As mkdir -p, one level after the other; "already there" is found out by opening it.
  for (std::size_t slash = directory_.find('/', 1);; slash = directory_.find('/', slash + 1)) {
    const std::string level = directory_.substr(0, slash);
    if (mkdir(level.c_str(), kDirectoryMode) != 0 && errno != EEXIST && (slash == std::string::npos || errno == ENOTDIR)) {
      return SystemError(errno, "cannot create directory", level);
    }
    if (slash == std::string::npos) break;
  }
  const int descriptor = open(directory_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) return SystemError(errno, "cannot open directory", directory_);
  directory_descriptor_ = FileDescriptor(descriptor);
  return absl::OkStatus();
}

absl::StatusOr<FileDescriptor> FileExport::CreateTemporary(std::string& name) const {
  static std::atomic<std::uint64_t> counter{0};
  int error = 0;
  for (int attempt = 0; attempt < FileExporter::kMaxNameAttempts; ++attempt) {
    // Not to be foreseen with certainty, and different for every profiler of the process; O_EXCL does the rest.
    const auto now = std::chrono::steady_clock::now().time_since_epoch().count();
    const std::uint64_t token = static_cast<std::uint64_t>(now) + counter.fetch_add(1, std::memory_order_relaxed);
    name = absl::StrCat(".", Name(sequence_), ".", token, ".tmp");
    const int descriptor =
        openat(directory_descriptor_.get(), name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, kFileMode);
    if (descriptor >= 0) return FileDescriptor(descriptor);
    error = errno;
    if (error != EEXIST && error != EINTR) break;
  }
  return SystemError(error, "cannot create", Path(name));
}

absl::Status FileExport::Write(std::string_view bytes) {
  std::string temporary;
  absl::StatusOr<FileDescriptor> file = CreateTemporary(temporary);
  if (!file.ok()) return file.status();
  absl::Status status;
  if (fchmod(file->get(), kFileMode) != 0) status = SystemError(errno, "cannot set the mode of", Path(temporary));
  while (status.ok() && !bytes.empty()) {
    const ssize_t written = write(file->get(), bytes.data(), bytes.size());
    if (written >= 0) {
      bytes.remove_prefix(static_cast<std::size_t>(written));
    } else if (errno != EINTR) {
      status = SystemError(errno, "cannot write", Path(temporary));
    }
  }
  if (const int error = file->Close(); error != 0 && status.ok()) status = SystemError(error, "cannot close", Path(temporary));
  if (status.ok()) status = Rename(temporary);
  if (!status.ok()) unlinkat(directory_descriptor_.get(), temporary.c_str(), 0);
  return status;
}

absl::Status FileExport::Rename(const std::string& temporary) {
  const int directory = directory_descriptor_.get();
  std::uint64_t sequence = sequence_;
  int error = 0;
  for (int attempt = 0; attempt < FileExporter::kMaxNameAttempts; ++attempt) {
    name_ = Name(sequence);
    if (renameat2(directory, temporary.c_str(), directory, name_.c_str(), RENAME_NOREPLACE) == 0) return absl::OkStatus();
    error = errno;
    if (error == EINVAL || error == ENOSYS) {
      // A file system without this kind of rename: the look before is not atomic, but only a second profiler of this process could come
      // between.
      struct stat existing;
      if (fstatat(directory, name_.c_str(), &existing, AT_SYMLINK_NOFOLLOW) == 0) {
        error = EEXIST;
      } else if (renameat(directory, temporary.c_str(), directory, name_.c_str()) == 0) {
        return absl::OkStatus();
      } else {
        error = errno;
      }
    }
    if (error != EEXIST) break;
    for (const OwnFile& file : ListOwnFiles()) {
      if (!file.parsed.is_temporary && file.parsed.process_id == process_id_) sequence = std::max(sequence, file.parsed.sequence);
    }
    ++sequence;
  }
  return SystemError(error, "cannot rename a temporary to", Path(name_));
}

std::vector<OwnFile> FileExport::ListOwnFiles() const {
  std::vector<OwnFile> files;
  // A descriptor of its own, because closedir closes it and a position is shared between duplicates.
  const int descriptor = openat(directory_descriptor_.get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  DIR* directory = descriptor >= 0 ? fdopendir(descriptor) : nullptr;
  if (directory == nullptr) {
    if (descriptor >= 0) close(descriptor);
    return files;
  }
  for (std::size_t i = 0; i < FileExporter::kMaxDirectoryEntries; ++i) {
    const dirent* entry = readdir(directory);
    if (entry == nullptr) break;
    OwnFile file;
    struct stat status;
    if (!ParseName(entry->d_name, program_, suffix_, file.parsed) ||
        fstatat(descriptor, entry->d_name, &status, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISREG(status.st_mode) || status.st_uid != geteuid()) {
      continue;
    }
    file.name = entry->d_name;
    file.bytes = static_cast<std::uint64_t>(status.st_size);
    file.modified = status.st_mtim;
    files.push_back(std::move(file));
  }
  closedir(directory);
  return files;
}

void FileExport::RemoveOld(std::uint64_t max_files, std::uint64_t max_bytes) const {
  std::vector<OwnFile> files = ListOwnFiles();
  std::sort(files.begin(), files.end(), IsOlder);
  std::uint64_t count = 0, bytes = 0;
  for (const OwnFile& file : files) {
    if (file.parsed.is_temporary) continue;
    ++count;
    bytes += file.bytes;
  }
  const time_t now = time(nullptr);
  for (const OwnFile& file : files) {
    const bool is_excess = !file.parsed.is_temporary && file.name != name_ && (count > max_files || bytes > max_bytes);
    const bool is_stale = file.parsed.is_temporary && file.modified.tv_sec < now - FileExporter::kStaleTemporarySeconds;
    if (!is_excess && !is_stale) continue;
    // A file that cannot be removed is not counted on: the next one goes in its place.
    if (unlinkat(directory_descriptor_.get(), file.name.c_str(), 0) == 0 && is_excess) {
      --count;
      bytes -= file.bytes;
    }
  }
}

}  // namespace

FileExporter::FileExporter(const ExporterOptions& options)
    : directory_(*options.directory),
      max_files_(static_cast<std::uint64_t>(std::max<std::int64_t>(*options.max_files, 0))),
      max_bytes_(static_cast<std::uint64_t>(std::max<std::int64_t>(*options.max_bytes, 0))) {
  std::error_code error;
  const std::filesystem::path absolute = std::filesystem::absolute(directory_, error);
  if (!error && !directory_.empty()) directory_ = absolute.lexically_normal().string();
  while (directory_.size() > 1 && directory_.back() == '/') directory_.pop_back();
}

absl::StatusOr<std::string> FileExporter::Export(const ExportRequest& request) {
  if (directory_.empty()) return absl::InvalidArgumentError("exporter.directory is empty");
  if (request.file_suffix.empty() || request.file_suffix.find('/') != std::string_view::npos) {
    return absl::InvalidArgumentError(absl::StrCat("not a file suffix: \"", std::string(request.file_suffix), "\""));
  }
  FileExport file(directory_, request);
  if (absl::Status status = file.OpenDirectory(); !status.ok()) return status;
  if (absl::Status status = file.Write(request.bytes); !status.ok()) return status;
  file.RemoveOld(max_files_, max_bytes_);
  return file.path();
}

}  // namespace strobe
