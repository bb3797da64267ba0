// Works until a signal ends it, nine tenths of it in one function. Ends by itself after a while.
#include <unistd.h>

namespace {

volatile unsigned sink = 0;

constexpr unsigned kRounds = 100'000;
constexpr unsigned kLongestS = 600;

}  // namespace

__attribute__((noinline)) void Burn() {
  for (unsigned i = 0; i < 9 * kRounds; ++i) sink = sink * 1664525u + 1013904223u;
}

__attribute__((noinline)) void Simmer() {
  for (unsigned i = 0; i < kRounds; ++i) sink = sink * 22695477u + 1u;
}

__attribute__((noinline)) void Cook() {
  while (true) {
    Burn();
    Simmer();
  }
}

int main() {
  alarm(kLongestS);
  Cook();
}
