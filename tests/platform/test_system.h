// What tests ask of the operating system, once for each: the sources are in the folder of the
// system's name.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

namespace strobe::testing {

// A variable of this process's environment. Not while another thread looks at the environment.
void SetVariable(const char* name, const std::string& value);
void UnsetVariable(const char* name);

// The running machine's, not the build's: "x86_64", "aarch64" or another.
std::string ProcessorName();

// The CPU clock of one thread, read by any.
using ThreadClock = std::intptr_t;
ThreadClock ClockOfThisThread();
std::int64_t ReadNs(ThreadClock clock);
// Of the calling thread.
std::int64_t ThreadCpuNs();

// The running program's file.
std::filesystem::path ProgramPath();

// Runs it again, in a directory where it writes its output to the file `output` and its errors to
// `errors`. Returns its exit status, or -1 where it could not be run or did not come to its end.
int RunThisProgram(const std::vector<std::string>& arguments,
                   const std::filesystem::path& directory);

// A copy of machine instructions that can be executed. Where the system refuses, the program ends.
class CodePage {
 public:
  explicit CodePage(std::span<const std::uint8_t> code);
  CodePage(const CodePage&) = delete;
  CodePage& operator=(const CodePage&) = delete;
  ~CodePage();
  [[nodiscard]] void* start() const { return page_; }

 private:
  static constexpr std::size_t kBytes = 4096;  // of which as much of the code is there as fits
  void* page_;
};

// 0 where the system does not say.
std::size_t DataCacheLineBytes();

// A library that is loaded for as long as the object lives, if it could be.
class Library {
 public:
  explicit Library(const std::filesystem::path& path);
  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;
  ~Library();
  explicit operator bool() const { return handle_ != nullptr; }
  // 0 where it has no such symbol.
  [[nodiscard]] std::uintptr_t Symbol(const char* name) const;
  // Why the last one could not be loaded.
  static std::string Error();

 private:
  void* handle_;
};

// While it lives, this process cannot make a file longer, if the system knows such a limit.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(std::uint64_t bytes);
  FileSizeLimit(const FileSizeLimit&) = delete;
  FileSizeLimit& operator=(const FileSizeLimit&) = delete;
  ~FileSizeLimit();
  explicit operator bool() const { return is_set_; }

 private:
  bool is_set_ = false;
  std::uint64_t before_bytes_ = 0;
};

// A directory of one test's own, removed at the end with all that is in it.
class TemporaryDirectory {
 public:
  TemporaryDirectory();
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;
  ~TemporaryDirectory() {
    std::error_code error;
    std::filesystem::remove_all(path_, error);
  }
  [[nodiscard]] const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

}  // namespace strobe::testing
