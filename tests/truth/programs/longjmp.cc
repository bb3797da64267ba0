// setjmp and longjmp over one frame and over many.
#include <csetjmp>
#include <cstdint>

namespace {

volatile std::uint64_t sink = 1;
jmp_buf target;

[[gnu::noinline]] std::uint64_t Work(std::uint64_t a) {
  for (int i = 0; i < 300; ++i) a = a * 3 + (a >> 5);
  return a;
}

[[gnu::noinline]] std::uint64_t Down(int depth, std::uint64_t a) {
  const std::uint64_t b = Work(a);
  if (depth == 0) {
    if (sink != 0) longjmp(target, 1);
    return b;
  }
  const std::uint64_t below = Down(depth - 1, b);
  return below + a;
}

}  // namespace

int main() {
  static int round;  // not in a register, which longjmp may restore
  for (round = 0; round < 20; ++round) {
    if (setjmp(target) == 0) {
      sink = Down(round % 7, sink);
    } else {
      sink = Work(sink);
    }
  }
  return 0;
}
