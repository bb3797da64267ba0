// A profiler as a global: each thread registers where it begins, and no function passes it on.
#include <cstdint>
#include <cstdio>
#include <thread>
#include <vector>

#include "strobe/strobe.h"

namespace {

// Constructed before main, which starts it, and destroyed after main, which joins the threads. A
// program whose threads outlive main never destroys it:
//
//   strobe::Profiler& profiler = *new strobe::Profiler;
strobe::Profiler profiler;

constexpr std::uint64_t kNumbers = 1'000'000;  // of each worker

std::uint64_t CountPrimes(std::uint64_t begin, std::uint64_t end) {
  std::uint64_t primes = 0;
  for (std::uint64_t n = begin; n < end; ++n) {
    std::uint64_t divisor = 2;
    while (divisor * divisor <= n && n % divisor != 0) ++divisor;
    primes += divisor * divisor > n;
  }
  return primes;
}

void RunWorker(std::uint64_t begin, std::uint64_t& primes) {
  const auto registration = profiler.RegisterThread("worker");
  primes = CountPrimes(begin, begin + kNumbers);
}

}  // namespace

int main() {
  const auto registration = profiler.RegisterThread("main");
  const strobe::ScopedProfiler session(profiler);

  std::vector<std::uint64_t> primes(4);
  std::vector<std::thread> workers;
  for (std::size_t i = 0; i < primes.size(); ++i)
    workers.emplace_back(RunWorker, 2 + i * kNumbers, std::ref(primes[i]));
  std::uint64_t total = 0;
  for (std::size_t i = 0; i < primes.size(); ++i) {
    workers[i].join();
    total += primes[i];
  }
  std::printf("%llu primes\n", static_cast<unsigned long long>(total));
}
