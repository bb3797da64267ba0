// The contract of the ring between one thread (the producer, in its signal handler) and the
// collector (the consumer).
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>

namespace strobe {

// * Reset(memory) gives the ring its storage and empties it; no other thread may touch the ring
//   then. The storage is kStorageAlignment-aligned and outlives the use. Reset writes nothing into
//   it, so that untouched pages stay uncommitted.
// * Reserve(bytes) returns space for one record of at most `bytes`, or nullptr when there is none.
//   It never waits. Before Commit, another Reserve returns the same space. Signal-safe.
// * Commit(bytes) publishes the reserved record at its final size, in one release store; `bytes` is
//   at most what was reserved, and may be smaller. Signal-safe.
// * Peek() is the oldest record, with exactly the committed size, or empty when there is none. It
//   stays valid until Pop().
// * Pop() removes the record that Peek() returned.
// * corruptions() counts how often Peek found what no Commit can have written, and dropped all that
//   the ring had. 0 where no other process can write into the ring. The consumer's, since Reset.
// * used_bytes() is the fill, including what framing takes, as the consumer sees it; from either
//   side.
// * Records are aligned to 8 bytes and come out in order, byte for byte.
// * A ring holds no address. Its bytes and its storage's, copied to where they lie as far from each
//   other, are the same ring: at another address, or in another process. So it needs no destructor.
template <class R>
concept SampleRing = std::default_initializable<R> && std::is_standard_layout_v<R> &&
    std::is_trivially_destructible_v<R> &&
    requires(R& ring, const R& constant, std::span<std::byte> memory, std::size_t bytes) {
  { ring.Reset(memory) }
  noexcept->std::same_as<void>;
  { ring.Reserve(bytes) }
  noexcept->std::same_as<std::byte*>;
  { ring.Commit(bytes) }
  noexcept->std::same_as<void>;
  { ring.Peek() }
  noexcept->std::same_as<std::span<const std::byte>>;
  { ring.Pop() }
  noexcept->std::same_as<void>;
  { constant.used_bytes() }
  noexcept->std::same_as<std::size_t>;
  { constant.corruptions() }
  noexcept->std::same_as<std::uint64_t>;
  // The largest record that always fits an empty ring of `capacity` bytes.
  { R::MaxRecordBytes(bytes) } -> std::same_as<std::size_t>;
};

}  // namespace strobe
