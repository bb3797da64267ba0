// The contract for reading memory that may not be mapped: of this process, of another process, of
// an image, or of a fake in a test.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>

#include "strobe/base/address.h"

namespace strobe {

// read(address, bytes) copies the memory from `address` on into `bytes`.
// * It returns how many bytes it read, counted from the front: fewer than bytes.size() if the
//   memory ends earlier. The rest of `bytes` is unspecified.
// * It never faults, whatever the address is, and never reads beyond the end of the address space.
// * If part of the range cannot be read, a reader may read less than the readable beginning, even
//   nothing. A caller that needs the readable beginning retries with a shorter range.
// Addresses in an image count from its start.
template <class R>
concept MemoryReader = requires(R& read, Address address, std::span<std::uint8_t> bytes) {
  { read(address, bytes) } -> std::same_as<std::size_t>;
};

// A reader for the data plane: a MemoryReader that is signal-safe.
template <class R>
concept SignalSafeMemoryReader = MemoryReader<R> &&
    requires(R& read, Address address, std::span<std::uint8_t> bytes) {
  { read(address, bytes) }
  noexcept;
};

// Holds any reader, for code that is compiled only once. Control plane.
using AnyMemoryReader = std::function<std::size_t(Address address, std::span<std::uint8_t> bytes)>;
static_assert(MemoryReader<const AnyMemoryReader>);

// Reads nothing.
inline std::size_t ReadNothing(Address /*address*/, std::span<std::uint8_t> /*bytes*/) noexcept {
  return 0;
}
static_assert(SignalSafeMemoryReader<decltype(ReadNothing)>);

}  // namespace strobe
