#include "strobe/platform/linux/own_files.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/kcmp.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <condition_variable>
#include <cstdlib>
#include <functional>
#include <memory>
#include <mutex>
#include <utility>

#include "strobe/base/sanitizers.h"
#include "strobe/platform/linux/linux_platform.h"

namespace strobe::internal {

class ProgramFiles {
 public:
  ProgramFiles() : thread_(LinuxPlatform::RunOnOwnThread("strobe-files", [this] { Run(); })) {}
  ~ProgramFiles() {
    {
      const std::lock_guard lock(mutex_);
      is_ending_ = true;
      changed_.notify_all();
    }
    thread_.Join();
  }
  ProgramFiles(const ProgramFiles&) = delete;
  ProgramFiles& operator=(const ProgramFiles&) = delete;

  [[nodiscard]] bool IsRunning() const { return thread_.IsRunning(); }

  void Do(const std::function<void()>& act) {
    const std::lock_guard one_at_a_time(callers_);
    std::unique_lock lock(mutex_);
    act_ = &act;
    changed_.notify_all();
    changed_.wait(lock, [this] { return act_ == nullptr; });
  }

 private:
  void Run() {
    std::unique_lock lock(mutex_);
    while (true) {
      changed_.wait(lock, [this] { return act_ != nullptr || is_ending_; });
      if (act_ == nullptr) return;
      (*act_)();
      act_ = nullptr;
      changed_.notify_all();
    }
  }

  std::mutex callers_;
  std::mutex mutex_;
  std::condition_variable changed_;
  const std::function<void()>* act_ = nullptr;
  bool is_ending_ = false;
  LinuxPlatform::OwnThread thread_;  // the last: it uses the others
};

namespace {

constinit thread_local FilesOfThread* files_of_thread = nullptr;

constexpr int kFirstOther = STDERR_FILENO + 1;
// A sanitizer's report must reach the one who runs the tests.
constexpr bool kKeepsStandardFiles = kHasAddressSanitizer || kHasUndefinedBehaviorSanitizer;

// Where one call cannot do it: the copies of the program's files are open for a moment.
bool CopyAndCloseAll() {
  if (unshare(CLONE_FILES) != 0) return false;
  DIR* const files = opendir("/proc/thread-self/fd");
  if (files == nullptr) return true;  // the copies stay open until the thread ends
  while (const dirent* file = readdir(files)) {
    const int number = std::atoi(file->d_name);
    if (number >= kFirstOther && number != dirfd(files)) close(number);
  }
  closedir(files);
  return true;
}

// Whether the thread and the calling one have that in common (kcmp).
bool Shares(std::uint64_t thread_id, int what) {
  return syscall(SYS_kcmp, gettid(), static_cast<pid_t>(thread_id), what, 0, 0) <= 0;
}

bool HasOwnTable() {
#ifdef SYS_close_range
  constexpr unsigned kUnshare = 1 << 1;  // CLOSE_RANGE_UNSHARE of <linux/close_range.h>
  if (syscall(SYS_close_range, static_cast<unsigned>(kFirstOther), ~0U, kUnshare) == 0) return true;
#endif
  return CopyAndCloseAll();
}

}  // namespace

bool SharesFiles(std::uint64_t thread_id) { return Shares(thread_id, KCMP_FILES); }

bool HasProgramFiles() {
  const auto first = static_cast<std::uint64_t>(getpid());
  // A thread that has ended shares no memory either.
  return SharesFiles(first) || !Shares(first, KCMP_VM);
}

bool TakeOwnFiles() {
  // ThreadSanitizer takes a number for one file in all threads, and would report each as a race.
  if (kHasThreadSanitizer) return false;
  // Asks without a file, whose number would be the program's. A thread of the profiler has called
  // prctl before, for its name.
  const bool has_call_filter = prctl(PR_GET_SECCOMP) > 0;
  if (has_call_filter || !HasOwnTable()) return false;
  if (kKeepsStandardFiles) return true;
  const int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);
  for (int number = 0; number < kFirstOther; ++number) {
    if (nothing < 0 || (nothing != number && dup2(nothing, number) < 0)) close(number);
  }
  if (nothing >= kFirstOther) close(nothing);
  return true;
}

FilesOfThread::FilesOfThread(std::shared_ptr<ProgramFiles> program)
    : outer_(files_of_thread), program_(std::move(program)) {
  files_of_thread = this;
}
FilesOfThread::~FilesOfThread() { files_of_thread = outer_; }

std::shared_ptr<ProgramFiles> FilesOfThread::Program() {
  return files_of_thread == nullptr ? nullptr : files_of_thread->program_;
}

void WithOwnFiles(const std::function<void()>& body) {
  if (FilesOfThread::Program() != nullptr) return body();
  const auto program = std::make_shared<ProgramFiles>();
  LinuxPlatform::OwnThread thread;
  if (program->IsRunning()) {
    // The threads that it begins have its name until they have their own.
    thread = LinuxPlatform::RunOnOwnThread("", [&] {
      const FilesOfThread files(TakeOwnFiles() ? program : nullptr);
      body();
    });
  }
  if (!thread.IsRunning()) return body();
  thread.Join();
}

void WithProgramFiles(const std::function<void()>& act) {
  const std::shared_ptr<ProgramFiles> program = FilesOfThread::Program();
  program == nullptr ? act() : program->Do(act);
}

}  // namespace strobe::internal
