#include "platform/test_system.h"

#include <windows.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "absl/strings/str_cat.h"

namespace strobe::testing {

void SetVariable(const char* name, const std::string& value) {
  _putenv_s(name, value.c_str());
  // The C library has no empty variables, but what this process starts can have them.
  if (value.empty()) SetEnvironmentVariableA(name, "");
}
void UnsetVariable(const char* name) {
  _putenv_s(name, "");
  // One that is empty the C library does not know, and so leaves in place.
  SetEnvironmentVariableA(name, nullptr);
}

std::string ProcessorName() {
  SYSTEM_INFO info;
  GetNativeSystemInfo(&info);
  switch (info.wProcessorArchitecture) {
    case PROCESSOR_ARCHITECTURE_AMD64: return "x86_64";
    case PROCESSOR_ARCHITECTURE_ARM64: return "aarch64";
    default: return "another";
  }
}

ThreadClock ClockOfThisThread() {
  // Never closed: a test has few, and a thread's times can be read through it when the thread has
  // ended.
  return reinterpret_cast<ThreadClock>(
      OpenThread(THREAD_QUERY_INFORMATION, FALSE, GetCurrentThreadId()));
}

std::int64_t ReadNs(ThreadClock clock) {
  constexpr std::int64_t kFileTimeNs = 100;
  FILETIME created, ended, kernel, user;
  if (GetThreadTimes(reinterpret_cast<HANDLE>(clock), &created, &ended, &kernel, &user) == 0)
    return -1;
  const auto count = [](const FILETIME& time) {
    return std::int64_t{time.dwHighDateTime} << 32 | time.dwLowDateTime;
  };
  return (count(kernel) + count(user)) * kFileTimeNs;
}

std::int64_t ThreadCpuNs() { return ReadNs(reinterpret_cast<ThreadClock>(GetCurrentThread())); }

std::filesystem::path ProgramPath() {
  std::wstring path(32'768, L'\0');  // the longest that there is
  path.resize(GetModuleFileNameW(nullptr, path.data(), static_cast<DWORD>(path.size())));
  return path;
}

int RunThisProgram(const std::vector<std::string>& arguments,
                   const std::filesystem::path& directory) {
  const std::filesystem::path program = ProgramPath();
  std::wstring command = L"\"" + program.wstring() + L"\"";
  for (const std::string& argument : arguments)
    command += L" \"" + std::filesystem::path(argument).wstring() + L"\"";
  SECURITY_ATTRIBUTES inherited{
      .nLength = sizeof(inherited), .lpSecurityDescriptor = nullptr, .bInheritHandle = TRUE};
  const auto create = [&](const char* name) {
    return CreateFileW((directory / name).c_str(), GENERIC_WRITE, FILE_SHARE_READ, &inherited,
                       CREATE_ALWAYS, FILE_ATTRIBUTE_NORMAL, nullptr);
  };
  STARTUPINFOW startup{};
  startup.cb = sizeof(startup);
  startup.dwFlags = STARTF_USESTDHANDLES;
  startup.hStdInput = GetStdHandle(STD_INPUT_HANDLE);
  startup.hStdOutput = create("output");
  startup.hStdError = create("errors");
  PROCESS_INFORMATION child{};
  DWORD status = static_cast<DWORD>(-1);
  if (CreateProcessW(program.c_str(), command.data(), nullptr, nullptr, TRUE, 0, nullptr,
                     directory.c_str(), &startup, &child) != 0) {
    WaitForSingleObject(child.hProcess, INFINITE);
    GetExitCodeProcess(child.hProcess, &status);
    CloseHandle(child.hProcess);
    CloseHandle(child.hThread);
  }
  CloseHandle(startup.hStdOutput);
  CloseHandle(startup.hStdError);
  return static_cast<int>(status);
}

CodePage::CodePage(std::span<const std::uint8_t> code)
    : page_(VirtualAlloc(nullptr, kBytes, MEM_RESERVE | MEM_COMMIT, PAGE_READWRITE)) {
  DWORD before = 0;
  if (page_ == nullptr) std::abort();
  std::memcpy(page_, code.data(), std::min(code.size(), kBytes));
  if (VirtualProtect(page_, kBytes, PAGE_EXECUTE_READ, &before) == 0) std::abort();
}
CodePage::~CodePage() { VirtualFree(page_, 0, MEM_RELEASE); }

std::size_t DataCacheLineBytes() {
  DWORD bytes = 0;
  GetLogicalProcessorInformation(nullptr, &bytes);
  std::vector<SYSTEM_LOGICAL_PROCESSOR_INFORMATION> entries(
      bytes / sizeof(SYSTEM_LOGICAL_PROCESSOR_INFORMATION));
  if (GetLogicalProcessorInformation(entries.data(), &bytes) == 0) return 0;
  for (const auto& entry : entries) {
    if (entry.Relationship == RelationCache && entry.Cache.Level == 1 &&
        entry.Cache.Type != CacheInstruction)
      return entry.Cache.LineSize;
  }
  return 0;
}

Library::Library(const std::filesystem::path& path) : handle_(LoadLibraryW(path.c_str())) {}
Library::~Library() {
  if (handle_ != nullptr) FreeLibrary(static_cast<HMODULE>(handle_));
}
std::uintptr_t Library::Symbol(const char* name) const {
  return reinterpret_cast<std::uintptr_t>(GetProcAddress(static_cast<HMODULE>(handle_), name));
}
std::string Library::Error() { return absl::StrCat("error ", GetLastError()); }

// A file's size has no limit of a process's own here.
FileSizeLimit::FileSizeLimit(std::uint64_t /*bytes*/) {}
FileSizeLimit::~FileSizeLimit() = default;

TemporaryDirectory::TemporaryDirectory() {
  // Fails where the name is taken, and a later count gives the next one.
  do {
    path_ = std::filesystem::temp_directory_path() /
            absl::StrCat("strobe_test_", GetCurrentProcessId(), "_", GetTickCount64());
  } while (!std::filesystem::create_directory(path_));
}

}  // namespace strobe::testing
