// PullWorkers: the threads that answer requests, because a recording takes its time.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "strobe/http/pull_handler.h"
#include "strobe/platform/native.h"

namespace strobe::internal {

// They have the program's files, unlike other threads of the profiler: a recording may be one by a
// worker process, which is asked through a socket among them.
class PullWorkers {
 public:
  struct Answer {
    std::uint64_t connection;
    PullResponse response;
  };

  // `wake` is called on a worker when there is an answer.
  PullWorkers(const PullHandler& handler, std::function<void()> wake);
  ~PullWorkers() { Stop(); }
  PullWorkers(const PullWorkers&) = delete;
  PullWorkers& operator=(const PullWorkers&) = delete;

  // ResourceExhausted if the system refuses the threads.
  absl::Status Start();
  // Waits for the requests that are being answered. Those that wait get no answer.
  void Stop();

  void Ask(std::uint64_t connection, PullRequest request);
  // Those that there are.
  std::vector<Answer> TakeAnswers();

 private:
  void Work();

  const PullHandler& handler_;
  const std::function<void()> wake_;
  std::mutex mutex_;
  std::condition_variable has_work_;
  std::deque<std::pair<std::uint64_t, PullRequest>> requests_;
  std::vector<Answer> answers_;
  bool is_stopped_ = false;
  std::vector<NativePlatform::OwnThread> threads_;
};

}  // namespace strobe::internal
