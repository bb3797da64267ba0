// bench_record MODE: a program that knows nothing of Strobe. Prints the CPU time of the process,
// from the begin of main to the end of its work, in seconds.
#include <condition_variable>
#include <cstdio>
#include <ctime>
#include <map>
#include <mutex>
#include <stop_token>
#include <string>
#include <string_view>
#include <thread>

namespace {

volatile unsigned long sink;

double CpuSeconds() {
  timespec time{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

void Compute(unsigned long steps) {
  unsigned long state = steps | 1;
  for (unsigned long i = 0; i < steps; ++i) state = state * 6364136223846793005 + i;
  sink = state;
}

void Allocate() {
  std::map<unsigned, std::string> texts;
  for (unsigned i = 0; i < 1000; ++i) texts[i * 2654435761] = std::string(20 + i % 200, 'x');
  sink = texts.size();
}

}  // namespace

int main(int count, char** arguments) {
  const std::string_view mode = count > 1 ? arguments[1] : "";
  const double begin = CpuSeconds();
  if (mode == "compute") Compute(4'000'000'000);
  // With a second thread, the C library's allocator takes locks: then each run does.
  std::jthread waiting;
  if (mode == "allocate_locking") {
    waiting = std::jthread([](const std::stop_token& stop) {
      std::mutex mutex;
      std::condition_variable_any never;
      std::unique_lock lock(mutex);
      never.wait(lock, stop, [] { return false; });
    });
  }
  if (mode.starts_with("allocate")) {
    for (int i = 0; i < 40'000; ++i) Allocate();
  }
  if (mode == "threads") {  // one of a millisecond a task
    for (int i = 0; i < 4000; ++i) std::thread(&Compute, 1'000'000).join();
  }
  std::printf("%.6f\n", CpuSeconds() - begin);
}
