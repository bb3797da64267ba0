// The program of the documents that knows nothing of Strobe. Built twice: the version "after"
// parses for longer than the version "before".
#include <cstdint>
#include <cstdio>
#include <memory>
#include <vector>

static volatile std::uint64_t sink = 0;

// Stands for work: about a nanosecond a step.
static inline __attribute__((always_inline)) void Spend(std::uint64_t steps) {
  for (std::uint64_t i = 0; i < steps; ++i) sink = sink * 31 + i;
}

__attribute__((noinline)) void Parse() { Spend(PARSE_STEPS); }

__attribute__((noinline)) void Answer() { Spend(1'000'000); }

// What is never freed: 64 KiB a call.
__attribute__((noinline)) void Remember(std::vector<std::unique_ptr<char[]>>& memory) {
  memory.push_back(std::make_unique<char[]>(64 << 10));
}

int main() {
  auto& memory = *new std::vector<std::unique_ptr<char[]>>;
  for (int request = 0; request < 150; ++request) {
    Parse();
    Answer();
    Remember(memory);
  }
  std::printf("%zu requests\n", memory.size());
}
