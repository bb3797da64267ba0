// Threads that work while the program's main thread does something else, and others that come and
// go.
#pragma once

#include <sched.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

namespace strobe::testing {

class ShortThreads {
 public:
  // Each thread holds what `begin` returns for as long as it works.
  template <class Begin>
  explicit ShortThreads(const Begin& begin) {
    for (int i = 0; i < kThreads; ++i) {
      threads_.emplace_back([this, begin] {
        while (!is_over_) {
          std::thread([begin] { Work(begin); }).join();
          std::thread([begin] {
            // Its numbers are not the program's: what it cannot find is not lost.
            if (unshare(CLONE_FILES) == 0 && CloseAll()) Work(begin);
          }).join();
          Work(begin);
        }
      });
    }
  }
  ~ShortThreads() {
    is_over_ = true;
    for (std::thread& thread : threads_) thread.join();
  }
  ShortThreads(const ShortThreads&) = delete;
  ShortThreads& operator=(const ShortThreads&) = delete;

 private:
  static constexpr int kThreads = 2;
  static constexpr int kNumbers = 1024;
  static constexpr std::int64_t kWorkNs = 2'000'000;

  static bool CloseAll() {
    for (int number = STDERR_FILENO + 1; number < kNumbers; ++number) close(number);
    return true;
  }
  template <class Begin>
  static void Work(const Begin& begin) {
    [[maybe_unused]] const auto held = begin();
    for (std::int64_t end_ns = CpuNs() + kWorkNs; CpuNs() < end_ns;) {
    }
  }
  static std::int64_t CpuNs() {
    timespec time{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return std::int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
  }

  std::atomic<bool> is_over_{false};
  std::vector<std::thread> threads_;
};

}  // namespace strobe::testing
