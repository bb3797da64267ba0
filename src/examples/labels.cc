// Labels: profiles say for which request the time was used, also where requests move between
// threads, and where a coroutine stops in the middle of one.
#include <strobe/strobe.h>

#include <coroutine>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace {

volatile std::uint64_t sink = 0;

void Work() {
  for (std::uint64_t i = 0; i < 300'000'000; ++i) sink = sink * 31 + i;
}

// A coroutine that its owner resumes.
class Request {
 public:
  struct promise_type {
    Request get_return_object() {
      return Request(std::coroutine_handle<promise_type>::from_promise(*this));
    }
    std::suspend_always initial_suspend() noexcept { return {}; }
    std::suspend_always final_suspend() noexcept { return {}; }
    void return_void() {}
    void unhandled_exception() { std::terminate(); }
  };
  explicit Request(std::coroutine_handle<promise_type> handle) : handle_(handle) {}
  Request(Request&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  Request(const Request&) = delete;
  Request& operator=(const Request&) = delete;
  ~Request() {
    if (handle_) handle_.destroy();
  }
  // False if the coroutine has ended.
  bool Resume() {
    handle_.resume();
    return !handle_.done();
  }

 private:
  std::coroutine_handle<promise_type> handle_;
};

// `co_await Pause()` suspends the coroutine. The labels go with it: the thread gets its own back,
// and the thread that resumes the coroutine, maybe another one, gets the coroutine's.
class Pause {
 public:
  bool await_ready() noexcept { return false; }
  void await_suspend(std::coroutine_handle<> /*caller*/) noexcept {
    saved_ = strobe::ExchangeLabels({});
  }
  void await_resume() noexcept { strobe::ExchangeLabels(saved_); }

 private:
  strobe::Labels saved_;
};

Request Serve(std::string endpoint, int shard) {
  strobe::ExchangeLabels(strobe::Labels::Of({{"endpoint", endpoint}, {"shard", shard}}));
  Work();
  co_await Pause();
  Work();
  strobe::ExchangeLabels({});  // not a ScopedLabels: the thread may be another one now
}

}  // namespace

int main() {
  // The program is short, so the budget must not make its samples few.
  strobe::Profiler profiler({.sampling = {.max_overhead = 1}});
  auto registration = profiler.RegisterThread("main");
  strobe::ScopedProfiler session(profiler);

  {
    strobe::ScopedLabels labels({{"endpoint", "/pay"}, {"shard", 7}});
    Work();
    {
      strobe::ScopedLabels step({{"step", "charge"}});  // beside those of the outer scope
      Work();
    }
    // Another thread works for the same request.
    std::thread([&profiler, saved = strobe::CurrentLabels()] {
      auto helper = profiler.RegisterThread("helper");
      strobe::ScopedLabels taken(saved);
      Work();
    }).join();
  }

  std::vector<Request> requests;
  for (int shard = 0; shard < 2; ++shard) requests.push_back(Serve("/list", shard));
  for (Request& request : requests) request.Resume();
  std::thread([&] {
    auto second = profiler.RegisterThread("second");
    for (Request& request : requests) request.Resume();
  }).join();
  std::printf("labels left on main: %zu\n", strobe::CurrentLabels().set().labels().size());
}
