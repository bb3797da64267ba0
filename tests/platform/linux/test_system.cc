#include "platform/test_system.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>

// NOLINTNEXTLINE(readability-redundant-declaration): POSIX leaves declaring it to the program
extern char** environ;

namespace strobe::testing {

void SetVariable(const char* name, const std::string& value) { setenv(name, value.c_str(), 1); }
void UnsetVariable(const char* name) { unsetenv(name); }

std::string ProcessorName() {
  utsname machine{};
  return uname(&machine) == 0 ? machine.machine : "";
}

ThreadClock ClockOfThisThread() {
  clockid_t clock = 0;
  return pthread_getcpuclockid(pthread_self(), &clock) == 0 ? clock : 0;
}

std::int64_t ReadNs(ThreadClock clock) {
  timespec time{};
  clock_gettime(static_cast<clockid_t>(clock), &time);
  return std::int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

std::int64_t ThreadCpuNs() { return ReadNs(CLOCK_THREAD_CPUTIME_ID); }

std::filesystem::path ProgramPath() { return std::filesystem::read_symlink("/proc/self/exe"); }

int RunThisProgram(const std::vector<std::string>& arguments,
                   const std::filesystem::path& directory) {
  const std::string program = ProgramPath();
  std::vector<char*> words{const_cast<char*>(program.c_str())};
  for (const std::string& argument : arguments)
    words.push_back(const_cast<char*>(argument.c_str()));
  words.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addchdir_np(&actions, directory.c_str());
  constexpr int kFlags = O_WRONLY | O_CREAT | O_TRUNC;
  posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "output", kFlags, 0600);
  posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "errors", kFlags, 0600);
  pid_t child = -1;
  const bool is_running =
      posix_spawn(&child, program.c_str(), &actions, nullptr, words.data(), environ) == 0;
  posix_spawn_file_actions_destroy(&actions);
  int status = -1;
  if (!is_running) return -1;
  pid_t waited = 0;
  do {
    waited = waitpid(child, &status, 0);
  } while (waited < 0 && errno == EINTR);
  if (waited != child || !WIFEXITED(status)) return -1;
  return WEXITSTATUS(status);
}

CodePage::CodePage(std::span<const std::uint8_t> code)
    : page_(mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)) {
  if (page_ == MAP_FAILED) std::abort();
  std::memcpy(page_, code.data(), std::min(code.size(), kBytes));
  if (mprotect(page_, kBytes, PROT_READ | PROT_EXEC) != 0) std::abort();
}
CodePage::~CodePage() { munmap(page_, kBytes); }

std::size_t DataCacheLineBytes() {
  const long line_bytes = sysconf(_SC_LEVEL1_DCACHE_LINESIZE);
  return line_bytes > 0 ? static_cast<std::size_t>(line_bytes) : 0;
}

Library::Library(const std::filesystem::path& path)
    : handle_(dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL)) {}
Library::~Library() {
  if (handle_ != nullptr) dlclose(handle_);
}
std::uintptr_t Library::Symbol(const char* name) const {
  return reinterpret_cast<std::uintptr_t>(dlsym(handle_, name));
}
std::string Library::Error() {
  const char* error = dlerror();
  return error != nullptr ? error : "";
}

FileSizeLimit::FileSizeLimit(std::uint64_t bytes) {
  signal(SIGXFSZ, SIG_IGN);  // so that the write fails
  rlimit limit{};
  if (getrlimit(RLIMIT_FSIZE, &limit) != 0) return;
  before_bytes_ = limit.rlim_cur;
  limit.rlim_cur = bytes;
  is_set_ = setrlimit(RLIMIT_FSIZE, &limit) == 0;
}
FileSizeLimit::~FileSizeLimit() {
  rlimit limit{};
  if (!is_set_ || getrlimit(RLIMIT_FSIZE, &limit) != 0) return;
  limit.rlim_cur = before_bytes_;
  setrlimit(RLIMIT_FSIZE, &limit);
}

TemporaryDirectory::TemporaryDirectory() {
  std::string pattern = (std::filesystem::temp_directory_path() / "strobe_test_XXXXXX").string();
  if (mkdtemp(pattern.data()) == nullptr) std::abort();
  path_ = pattern;
}

}  // namespace strobe::testing
