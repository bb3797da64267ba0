#include "pull_workers.h"

#include "strobe/base/memory_guard.h"
#include "strobe/core/recording_options.h"
#include "strobe/platform/refused_thread.h"

namespace strobe::internal {
namespace {

// Enough for what is answered at once beside all recordings that there can be.
constexpr std::size_t kThreads = kMaxRecordings + 2;

}  // namespace

PullWorkers::PullWorkers(const PullHandler& handler, std::function<void()> wake)
    : handler_(handler), wake_(std::move(wake)) {}

absl::Status PullWorkers::Start() {
  for (std::size_t i = 0; i < kThreads; ++i) {
    threads_.push_back(NativePlatform::RunOnOwnThread("strobe-pull", [this] { Work(); }));
    absl::Status status = StatusOfThread("the server", threads_.back());
    if (status.ok()) continue;
    Stop();
    return status;
  }
  return absl::OkStatus();
}

void PullWorkers::Stop() {
  {
    const std::lock_guard lock(mutex_);
    is_stopped_ = true;
  }
  has_work_.notify_all();
  for (NativePlatform::OwnThread& thread : threads_) thread.Join();
}

void PullWorkers::Ask(std::uint64_t connection, PullRequest request) {
  {
    const std::lock_guard lock(mutex_);
    requests_.emplace_back(connection, std::move(request));
  }
  has_work_.notify_one();
}

std::vector<PullWorkers::Answer> PullWorkers::TakeAnswers() {
  const std::lock_guard lock(mutex_);
  return std::exchange(answers_, {});
}

void PullWorkers::Work() {
  std::unique_lock lock(mutex_);
  while (true) {
    has_work_.wait(lock, [this] { return is_stopped_ || !requests_.empty(); });
    if (is_stopped_) return;
    const auto asked = std::move(requests_.front());
    requests_.pop_front();
    lock.unlock();
    Answer answer{asked.first, {.status = 503}};
    static_cast<void>(HasMemoryFor([&] { answer.response = handler_.Handle(asked.second); }));
    lock.lock();
    static_cast<void>(HasMemoryFor([&] { answers_.push_back(std::move(answer)); }));
    lock.unlock();
    wake_();
    lock.lock();
  }
}

}  // namespace strobe::internal
