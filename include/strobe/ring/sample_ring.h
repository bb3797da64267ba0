// The contract of the ring between one thread (the producer, in its signal handler) and the
// collector (the consumer).
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>

namespace strobe {

// * Reset(memory) gives the ring its storage and empties it. No other thread may touch the ring
//   meanwhile. The storage is kStorageAlignment-aligned and must outlive the use. Reset writes
//   nothing into it, so that untouched pages stay uncommitted.
// * Reserve(bytes) returns space for one record of at most `bytes`, or nullptr if there is none. It
//   never waits. Before Commit, another Reserve returns the same space. Signal-safe.
// * Commit(bytes) publishes the reserved record at its final size, in one release store. `bytes` is
//   at most the reserved size. Signal-safe.
// * Peek() returns the oldest record, with exactly the committed size; empty if there is none. The
//   record stays valid until Pop().
// * Pop() removes the record that Peek() returned.
// * corruptions() counts how often Peek found bytes that no Commit can have written, and dropped
//   everything in the ring. 0 if no other process can write into the ring. It counts since Reset,
//   and only the consumer may call it.
// * used_bytes() returns the used space, framing included, as the consumer sees it. Both sides may
//   call it.
// * Records are aligned to 8 bytes and come out in order, byte for byte.
// * A ring holds no address. A copy of the ring and of its storage, at the same distance from each
//   other, is the same ring: at another address, or in another process. So it needs no destructor.
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
