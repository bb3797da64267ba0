// Every way in and out of a function that compilers know: saved registers, tail calls, alloca,
// realigned stacks (main's too), function pointers, calls through the PLT for the first time and
// again, callbacks from libc, and recursion.
#include <alloca.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace {

volatile std::uint64_t sink = 1;

[[gnu::noinline]] std::uint64_t Leaf(std::uint64_t a) { return a * 3 + sink; }

// Holds six values over calls, so it saves all registers that it must.
[[gnu::noinline]] std::uint64_t ManyRegisters(std::uint64_t a, std::uint64_t b, std::uint64_t c) {
  const std::uint64_t d = Leaf(a), e = Leaf(b), f = Leaf(c);
  const std::uint64_t g = Leaf(d + e), h = Leaf(e + f), i = Leaf(f + a);
  return a + b * d + c * e + f * g + h * i + Leaf(g ^ h);
}

// Leaves early without a frame, and late with one.
[[gnu::noinline]] std::uint64_t Shrunk(std::uint64_t a) {
  if ((a & 3) == 0) return a;
  const std::uint64_t b = Leaf(a);
  return b + ManyRegisters(a, b, a ^ b);
}

[[gnu::noinline]] std::uint64_t TailCall(std::uint64_t a) {
  sink = sink + 1;
  return Shrunk(a + 1);
}

[[gnu::noinline]] std::uint64_t Alloca(std::size_t bytes) {
  auto* memory = static_cast<unsigned char*>(alloca(bytes));
  std::memset(memory, static_cast<int>(bytes), bytes);
  const std::uint64_t before = Leaf(memory[bytes / 2]);
  return before + TailCall(memory[0]);
}

[[gnu::noinline]] std::uint64_t Realigned(std::uint64_t a) {
  alignas(64) std::uint64_t block[8] = {a, a + 1};
  asm volatile("" : : "r"(block) : "memory");
  return Leaf(block[1]) + TailCall(block[0]);
}

[[gnu::noinline]] std::uint64_t LargeFrame(std::uint64_t a) {
  std::uint64_t block[1024];
  block[0] = a;
  asm volatile("" : : "r"(block) : "memory");
  return Leaf(block[0]) + ManyRegisters(a, 1, 2);
}

[[gnu::noinline]] std::uint64_t Recurse(unsigned depth, std::uint64_t a) {
  if (depth == 0) return Realigned(a);
  const std::uint64_t below = Recurse(depth - 1, a + depth);
  return below * 3 + sink;
}

int Compare(const void* a, const void* b) {
  return *static_cast<const int*>(a) - *static_cast<const int*>(b) + static_cast<int>(Leaf(0) & 0);
}

}  // namespace

int main(int argc, char** argv) {
  alignas(64) char text[256];
  std::uint64_t (*const functions[])(std::uint64_t) = {Leaf, Shrunk, TailCall, Realigned,
                                                       LargeFrame};
  std::uint64_t sum = 0;
  for (unsigned round = 0; round < 20; ++round) {
    for (const auto function : functions) sum += function(round + static_cast<unsigned>(argc));
    sum += Alloca(16 + round * 8) + ManyRegisters(sum, round, 3);
    int numbers[12];
    for (int i = 0; i < 12; ++i) numbers[i] = static_cast<int>((i * 7919u + round * 31u) % 101);
    std::qsort(numbers, 12, sizeof(numbers[0]), &Compare);
    std::snprintf(text, sizeof(text), "%s %d %llx", argv[0], numbers[3],
                  static_cast<unsigned long long>(sum));
    sum += std::strlen(text) +
           static_cast<std::uint64_t>(std::strtol(text + std::strlen(argv[0]) + 1, nullptr, 10));
  }
  for (unsigned depth = 0; depth < 120; depth += 20) sum += Recurse(depth, sum);
  sink = sum;
  return 0;
}
