// Exceptions thrown through frames with and without clean-up, caught and thrown on.
#include <cstdint>
#include <stdexcept>

namespace {

volatile std::uint64_t sink = 1;

struct Cleanup {
  ~Cleanup() { sink = sink + 1; }
};

[[gnu::noinline]] std::uint64_t Throw(int depth) {
  if (depth == 0) throw std::runtime_error("thrown");
  if (depth % 2 == 0) {
    const std::uint64_t below = Throw(depth - 1);
    return below + sink;
  }
  const Cleanup cleanup;
  return Throw(depth - 1) + sink;
}

[[gnu::noinline]] std::uint64_t Rethrow(int depth) {
  try {
    return Throw(depth);
  } catch (const std::exception&) {
    if (depth > 2) throw;
    return 1;
  }
}

}  // namespace

int main() {
  for (int round = 0; round < 4; ++round) {
    try {
      sink = sink + Rethrow(round);
    } catch (const std::runtime_error& error) {
      sink = sink + static_cast<std::uint64_t>(error.what()[0]);
    }
  }
  return 0;
}
