// A small shared library, which the axis of modules loads many copies of.
#include <cstddef>
#include <cstdint>
#include <utility>

namespace {

volatile std::uint64_t sink;

template <std::size_t number>
__attribute__((noinline)) std::uint64_t Function(std::uint64_t value) {
  volatile std::uint64_t locals[number + 1];
  locals[number] = value * (2 * number + 3);
  sink = locals[number];
  return locals[number] + sink;
}

template <std::size_t... numbers>
std::uint64_t CallAll(std::uint64_t value, std::index_sequence<numbers...> /*all*/) {
  return (Function<numbers>(value) + ...);
}

}  // namespace

extern "C" std::uint64_t StrobeBenchScaleModule(std::uint64_t value) {
  return CallAll(value, std::make_index_sequence<64>());
}
