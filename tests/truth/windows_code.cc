#include "windows_code.h"

#include <algorithm>
#include <array>
#include <csetjmp>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "windows_stepping.h"

#define STROBE_NOT_INLINED __attribute__((noinline, noclone))

namespace strobe::testing {
namespace {

volatile unsigned sink = 0;

// Every register that a function keeps for its caller is in use across the calls.
STROBE_NOT_INLINED unsigned ManyRegisters(unsigned depth, unsigned a, unsigned b, unsigned c,
                                          unsigned d, unsigned e) {
  if (depth == 0) return a ^ b ^ c ^ d ^ e;
  unsigned f = a * 3 + sink;
  unsigned g = b * 5 + sink;
  const unsigned first = ManyRegisters(depth - 1, b, c, d, e, f);
  f += first;
  const unsigned second = depth % 3 == 0 ? ManyRegisters(depth - 1, g, f, e, d, c) : first;
  return a + b + c + d + e + f + g + second;
}

// The stack pointer moves by an amount that is not known before.
STROBE_NOT_INLINED unsigned Dynamic(unsigned bytes) {
  auto* const memory = static_cast<unsigned char*>(__builtin_alloca(bytes));
  std::memset(memory, static_cast<int>(bytes), bytes);
  unsigned sum = 0;
  for (unsigned i = 0; i < bytes; i += 16) sum += memory[i];
  return bytes < 64 ? sum : sum + Dynamic(bytes / 2) + memory[bytes / 2];
}

// More than a page, so that the prologue touches each.
STROBE_NOT_INLINED unsigned BigFrame(unsigned value) {
  std::array<unsigned char, 40000> memory;
  std::memset(memory.data(), static_cast<int>(value), 64);
  sink = sink + memory[value % 64];
  return memory[value % 32] + ManyRegisters(2, value, 1, 2, 3, 4);
}

// Keeps registers of floating point.
STROBE_NOT_INLINED double FloatingPoint(unsigned count, double a, double b, double c) {
  double sum = a;
  for (unsigned i = 0; i < count; ++i) {
    sum = sum * b + c;
    if (sum > 1e6) sum = FloatingPoint(0, a, c, b);
    sink = sink + static_cast<unsigned>(sum);
  }
  return sum + a * b * c;
}

STROBE_NOT_INLINED unsigned Leaf(unsigned value) { return value * 2654435761u; }
STROBE_NOT_INLINED unsigned TailCall(unsigned value) {
  sink = sink + Leaf(value);
  return Leaf(value + 1);
}

struct Cleanup {
  __attribute__((always_inline)) ~Cleanup() {
    ContinueStepping();
    sink = sink + 1;
  }
};
STROBE_NOT_INLINED unsigned Throw(unsigned depth) {
  if (depth == 0) throw std::runtime_error("thrown");
  const Cleanup cleanup;
  return Throw(depth - 1) + sink;
}
STROBE_NOT_INLINED unsigned Catch(unsigned depth) {
  try {
    return Throw(depth);
  } catch (const std::exception& error) {
    ContinueStepping();
    return static_cast<unsigned>(error.what()[0]);
  }
}

STROBE_NOT_INLINED unsigned Jump(unsigned value) {
  std::jmp_buf place;
  volatile unsigned kept = value;
  if (setjmp(place) == 0) {
    kept = kept + 1;
    std::longjmp(place, 1);
  }
  return kept;
}

__attribute__((noinline, optimize("no-omit-frame-pointer"))) unsigned WithFramePointer(
    unsigned value) {
  return value < 3 ? value : WithFramePointer(value - 1) + WithFramePointer(value - 3);
}

int Compare(const void* a, const void* b) {
  const unsigned left = *static_cast<const unsigned*>(a);
  const unsigned right = *static_cast<const unsigned*>(b);
  return left < right ? -1 : left > right ? 1 : 0;
}

// The C library's own frames between ours.
STROBE_NOT_INLINED unsigned Libraries(unsigned seed) {
  std::array<unsigned, 40> numbers;
  for (unsigned& number : numbers) number = seed = Leaf(seed + 1);
  std::qsort(numbers.data(), numbers.size(), sizeof(numbers[0]), &Compare);
  std::array<char, 256> text;
  std::snprintf(text.data(), text.size(), "%u %s %.17g", numbers[3], "text",
                1.0 / (numbers[5] + 1));
  std::map<std::string, std::vector<unsigned>> map;
  for (const unsigned number : numbers) map[std::to_string(number % 7)].push_back(number);
  std::ostringstream stream;
  for (const auto& [key, values] : map)
    stream << key << ": " << values.size() << " " << 0.5 * values[0] << "\n";
  std::string sorted = stream.str() + text.data();
  std::sort(sorted.begin(), sorted.end());
  return static_cast<unsigned>(sorted.size()) +
         static_cast<unsigned char>(sorted[sorted.size() / 2]);
}

}  // namespace

unsigned RunWindowsCode(unsigned seed) {
  unsigned sum = ManyRegisters(6, seed, 2, 3, 4, 5);
  sum += Dynamic(512 + seed % 64);
  sum += BigFrame(seed);
  sum += static_cast<unsigned>(FloatingPoint(8 + seed % 4, 1.5, 0.75, 2.25));
  sum += TailCall(seed);
  sum += Jump(seed);
  sum += WithFramePointer(7 + seed % 3);
  sum += Libraries(seed);
  sum += Catch(seed % 5);
  sink = sink + sum;
  return sum;
}

}  // namespace strobe::testing
