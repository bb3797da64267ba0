// A program that knows nothing of Strobe, whose threads wait for locks and conditions, and throw:
// waiting_program MODE. It prints, by its own clock, how long each kind of wait has taken.
#include <pthread.h>
#include <threads.h>
#include <time.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <cstdio>
#include <mutex>
#include <shared_mutex>
#include <stdexcept>
#include <string>
#include <thread>

namespace {

constexpr int kRounds = 40;
constexpr long kHoldNs = 10'000'000;

std::int64_t NowNs() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return std::int64_t{1'000'000'000} * now.tv_sec + now.tv_nsec;
}
void Sleep() {
  const timespec time{.tv_sec = 0, .tv_nsec = kHoldNs};
  nanosleep(&time, nullptr);
}
timespec Later() {
  timespec time{};
  clock_gettime(CLOCK_REALTIME, &time);
  time.tv_sec += 60;
  return time;
}

// A turn of the thread that holds a lock, and one of the thread that waits for it.
class Turns {
 public:
  void Await(int turn) {
    while (turn_.load() != turn) std::this_thread::yield();
  }
  void Set(int turn) { turn_.store(turn); }

 private:
  std::atomic<int> turn_{0};
};

// Each round: another thread takes the lock by take() and keeps it a while; then this one asks for
// it. Prints how long that has taken, in all.
template <class Take, class Give, class Ask>
void Contend(const char* name, const Take& take, const Give& give, const Ask& ask) {
  Turns turns;
  std::thread holder([&] {
    for (int i = 0; i < kRounds; ++i) {
      turns.Await(2 * i);
      take();
      turns.Set(2 * i + 1);
      Sleep();
      give();
    }
  });
  std::int64_t waited_ns = 0;
  for (int i = 0; i < kRounds; ++i) {
    turns.Await(2 * i + 1);
    const std::int64_t begin_ns = NowNs();
    ask();
    waited_ns += NowNs() - begin_ns;
    turns.Set(2 * i + 2);
  }
  holder.join();
  std::printf("%s %.9f\n", name, 1e-9 * static_cast<double>(waited_ns));
}

std::mutex mutex;
std::timed_mutex timed;
std::shared_mutex shared;
mtx_t c11;

extern "C" {
[[gnu::noinline]] void AskMutex() {
  mutex.lock();
  mutex.unlock();
}
[[gnu::noinline]] void AskTimed() {
  if (timed.try_lock_for(std::chrono::seconds(60))) timed.unlock();
}
[[gnu::noinline]] void AskRead() {
  shared.lock_shared();
  shared.unlock_shared();
}
[[gnu::noinline]] void AskWrite() {
  shared.lock();
  shared.unlock();
}
[[gnu::noinline]] void AskC11() {
  mtx_lock(&c11);
  mtx_unlock(&c11);
}
}

int WaitForLocks() {
  mtx_init(&c11, mtx_plain);
  Contend(
      "AskMutex", [] { mutex.lock(); }, [] { mutex.unlock(); }, &AskMutex);
  Contend(
      "AskTimed", [] { timed.lock(); }, [] { timed.unlock(); }, &AskTimed);
  Contend(
      "AskRead", [] { shared.lock(); }, [] { shared.unlock(); }, &AskRead);
  Contend(
      "AskWrite", [] { shared.lock_shared(); }, [] { shared.unlock_shared(); }, &AskWrite);
  Contend(
      "AskC11", [] { mtx_lock(&c11); }, [] { mtx_unlock(&c11); }, &AskC11);
  return 0;
}

// Another thread notifies a while after this one has begun to wait.
template <class Wait>
void AwaitCondition(const char* name, const Wait& wait) {
  std::mutex own;
  std::condition_variable condition;
  bool is_there = false;
  Turns turns;
  std::thread notifier([&] {
    for (int i = 0; i < kRounds; ++i) {
      turns.Await(i + 1);
      Sleep();
      const std::lock_guard lock(own);
      is_there = true;
      condition.notify_one();
    }
  });
  std::int64_t waited_ns = 0;
  for (int i = 0; i < kRounds; ++i) {
    std::unique_lock lock(own);
    turns.Set(i + 1);
    const std::int64_t begin_ns = NowNs();
    while (!is_there) wait(condition, lock);
    waited_ns += NowNs() - begin_ns;
    is_there = false;
  }
  notifier.join();
  std::printf("%s %.9f\n", name, 1e-9 * static_cast<double>(waited_ns));
}

using Condition = std::condition_variable;
using Lock = std::unique_lock<std::mutex>;

extern "C" {
[[gnu::noinline]] void AwaitPlain(Condition* condition, Lock* lock) { condition->wait(*lock); }
[[gnu::noinline]] void AwaitTimed(Condition* condition, Lock* lock) {
  condition->wait_for(*lock, std::chrono::seconds(60));
}
[[gnu::noinline]] void AwaitUntil(Condition* condition, Lock* lock) {
  const timespec later = Later();
  pthread_cond_timedwait(condition->native_handle(), lock->mutex()->native_handle(), &later);
}
}

int WaitForConditions() {
  AwaitCondition("AwaitPlain",
                 [](Condition& condition, Lock& lock) { AwaitPlain(&condition, &lock); });
  AwaitCondition("AwaitTimed",
                 [](Condition& condition, Lock& lock) { AwaitTimed(&condition, &lock); });
  AwaitCondition("AwaitUntil",
                 [](Condition& condition, Lock& lock) { AwaitUntil(&condition, &lock); });
  return 0;
}

// What locks say is what they say without a recording.
int PrintResults() {
  pthread_mutexattr_t attributes;
  pthread_mutexattr_init(&attributes);
  pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_ERRORCHECK);
  pthread_mutex_t checked;
  pthread_mutex_init(&checked, &attributes);
  std::printf("%d ", pthread_mutex_lock(&checked));
  std::printf("again: %d\n", pthread_mutex_lock(&checked));
  pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_RECURSIVE);
  pthread_mutex_t recursive;
  pthread_mutex_init(&recursive, &attributes);
  std::printf("%d ", pthread_mutex_lock(&recursive));
  std::printf("again: %d\n", pthread_mutex_lock(&recursive));
  // A thread ends with it.
  pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_NORMAL);
  pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
  pthread_mutex_t robust;
  pthread_mutex_init(&robust, &attributes);
  std::thread([&] { pthread_mutex_lock(&robust); }).join();
  std::printf("left: %d\n", pthread_mutex_lock(&robust));
  pthread_mutex_unlock(&robust);
  std::printf("not mended: %d\n", pthread_mutex_lock(&robust));
  const timespec past{};
  std::thread([&] {
    std::printf("late: %d\n", pthread_mutex_timedlock(&checked, &past));
    std::printf("late: %d\n", pthread_mutex_clocklock(&checked, CLOCK_MONOTONIC, &past));
  }).join();
  pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
  std::printf("late: %d\n", pthread_cond_timedwait(&condition, &checked, &past));
  pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
  std::printf("%d ", pthread_rwlock_wrlock(&lock));
  std::printf("again: %d\n", pthread_rwlock_wrlock(&lock));
  std::printf("to read: %d\n", pthread_rwlock_timedrdlock(&lock, &past));
  // Waits are where a thread may be cancelled, and its mutex is taken then.
  pthread_mutex_t plain = PTHREAD_MUTEX_INITIALIZER;
  struct Place {
    pthread_cond_t* condition;
    pthread_mutex_t* mutex;
    std::atomic<bool> waits{false};
  } place{&condition, &plain};
  pthread_t thread;
  pthread_create(
      &thread, nullptr,
      [](void* given) -> void* {
        auto& own = *static_cast<Place*>(given);
        pthread_mutex_lock(own.mutex);
        own.waits.store(true);
        pthread_cleanup_push(
            [](void* mutex) { pthread_mutex_unlock(static_cast<pthread_mutex_t*>(mutex)); },
            own.mutex);
        for (;;) pthread_cond_wait(own.condition, own.mutex);
        pthread_cleanup_pop(0);
        return nullptr;
      },
      &place);
  while (!place.waits.load()) std::this_thread::yield();
  pthread_mutex_lock(&plain);
  pthread_mutex_unlock(&plain);
  pthread_cancel(thread);
  void* result = nullptr;
  pthread_join(thread, &result);
  std::printf("cancelled: %d, mutex: %d\n", static_cast<int>(result == PTHREAD_CANCELED),
              pthread_mutex_trylock(&plain));
  return 0;
}

extern "C" {
[[gnu::noinline]] void ThrowRange(int value) { throw std::out_of_range(std::to_string(value)); }
[[gnu::noinline]] void ThrowNumber(int value) { throw value; }
}

int Throw() {
  int caught = 0;
  for (int i = 0; i < 300; ++i) {
    try {
      if (i % 3 == 0) ThrowNumber(i);
      ThrowRange(i);
    } catch (const std::exception& /*range*/) {
      ++caught;
    } catch (int /*number*/) {
      ++caught;
    }
  }
  std::printf("caught: %d\n", caught);
  return 0;
}

}  // namespace

int main(int count, char** arguments) {
  const std::string mode = count > 1 ? arguments[1] : "";
  if (mode == "locks") return WaitForLocks();
  if (mode == "conditions") return WaitForConditions();
  if (mode == "results") return PrintResults();
  if (mode == "throw") return Throw();
  return 99;
}
