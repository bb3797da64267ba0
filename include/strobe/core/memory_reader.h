// The contract of everything that reads memory that may not be there: this process's, another
// process's, an image's, a fake in a test.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>

#include "strobe/base/address.h"

namespace strobe {

// read(address, bytes) copies the memory from `address` on into `bytes`.
// * It returns how many bytes it could read, from the front: fewer than bytes.size() if the memory
//   ends before. What `bytes` holds behind them is unspecified.
// * It never faults, whatever the address is, and never reads beyond the end of the address space.
// * A reader may find less than there is, down to nothing, where a part of the range cannot be
//   read. A caller that needs the readable beginning asks again for less.
// The addresses of an image are counted from its start.
template <class R>
concept MemoryReader = requires(R& read, Address address, std::span<std::uint8_t> bytes) {
  { read(address, bytes) } -> std::same_as<std::size_t>;
};

// A reader for the data plane: it is signal-safe, too.
template <class R>
concept SignalSafeMemoryReader = MemoryReader<R> &&
    requires(R& read, Address address, std::span<std::uint8_t> bytes) {
  { read(address, bytes) }
  noexcept;
};

// Any reader, for code that is compiled once. Control plane.
using AnyMemoryReader = std::function<std::size_t(Address address, std::span<std::uint8_t> bytes)>;
static_assert(MemoryReader<const AnyMemoryReader>);

// Reads nothing.
inline std::size_t ReadNothing(Address /*address*/, std::span<std::uint8_t> /*bytes*/) noexcept {
  return 0;
}
static_assert(SignalSafeMemoryReader<decltype(ReadNothing)>);

}  // namespace strobe
