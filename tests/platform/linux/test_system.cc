#include "platform/test_system.h"

#include <dlfcn.h>
#include <pthread.h>
#include <sys/resource.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>

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

std::size_t DataCacheLineBytes() {
  const long line_bytes = sysconf(_SC_LEVEL1_DCACHE_LINESIZE);
  return line_bytes > 0 ? static_cast<std::size_t>(line_bytes) : 0;
}

Library::Library(const std::filesystem::path& path) : handle_(dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL)) {}
Library::~Library() {
  if (handle_ != nullptr) dlclose(handle_);
}
std::uintptr_t Library::Symbol(const char* name) const { return reinterpret_cast<std::uintptr_t>(dlsym(handle_, name)); }
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
