// SpscRing: the default model of SampleRing, a ring of bytes that holds contiguous records of any
// length.
//
// Positions only grow. A record's offset in the storage is (position - origin) modulo the capacity.
// If the producer finds the ring empty and would write to memory that it never wrote before, it
// moves the origin, so that the next record goes to the front of the storage. So a thread that is
// sampled rarely touches only one page, however long it runs. A record that does not fit before the
// end of the storage goes to the front, and a marker fills the rest.
#pragma once

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "strobe/base/cache_line.h"
#include "strobe/base/page.h"
#include "strobe/base/signal_safe.h"
#include "strobe/ring/sample_ring.h"

namespace strobe {

// One thread calls Reserve and Commit, another calls Peek and Pop, and both may call used_bytes.
// The state is two cache lines long, the producer's first. An owner that aligns the object to a
// cache line avoids false sharing between the two threads.
class SpscRing {
 public:
  // Storage must be aligned to this.
  static constexpr std::size_t kStorageAlignment = 8;
  // Storage beyond this, or beyond the largest power of two within it, is left unused.
  static constexpr std::size_t kMaxCapacityBytes = std::size_t{1} << 31;

  static constexpr std::size_t MaxRecordBytes(std::size_t capacity) {
    const std::size_t usable = UsableBytes(capacity);
    return usable < sizeof(Frame) ? 0 : usable - sizeof(Frame);
  }

  void Reset(std::span<std::byte> memory) noexcept {
    const std::size_t capacity = UsableBytes(memory.size());
    producer_.storage = consumer_.storage =
        reinterpret_cast<std::uintptr_t>(memory.data()) - Self();
    producer_.capacity = consumer_.capacity = capacity;
    producer_.origin = consumer_.origin = 0;
    producer_.reserved_offset = producer_.known_tail = consumer_.known_head = consumer_.next = 0;
    producer_.reserved_bytes = producer_.touched = 0;
    consumer_.corruptions = 0;
    producer_.head.store(0, std::memory_order_relaxed);
    consumer_.tail.store(0, std::memory_order_release);
  }

  STROBE_SIGNAL_SAFE std::byte* Reserve(std::size_t bytes) noexcept {
    Producer& p = producer_;
    if (p.capacity == 0 || bytes > p.capacity - sizeof(Frame)) return nullptr;
    const std::size_t need = FramedBytes(bytes);
    const std::uint64_t head = p.head.load(std::memory_order_relaxed);
    std::size_t offset = Offset(head, p.origin, p.capacity);
    // Reads the consumer's cache line only if the record could fail to fit, wrap or touch new
    // memory.
    if (offset + need > p.touched || head - p.known_tail + need > p.capacity) {
      if (!MakeRoom(head, need, offset)) return nullptr;
    }
    p.reserved_bytes = static_cast<std::uint32_t>(bytes);
    p.reserved_offset = offset;
    return At(p.storage, offset) + sizeof(Frame);
  }

  // Needs a Reserve before it. A size of 0 publishes nothing and gives the space back.
  STROBE_SIGNAL_SAFE void Commit(std::size_t bytes) noexcept {
    Producer& p = producer_;
    const std::size_t size = std::min<std::size_t>(bytes, p.reserved_bytes);
    if (size == 0) return;
    const std::uint64_t head = p.head.load(std::memory_order_relaxed);
    const std::size_t offset = Offset(head, p.origin, p.capacity);
    std::uint64_t end = head + FramedBytes(size);
    // After MakeRoom has put a marker at `offset`, the record is at the front.
    if (p.reserved_offset != offset) end += p.capacity - offset;
    Store(p.reserved_offset, {static_cast<std::uint32_t>(size), kRecord});
    const std::size_t touched = p.reserved_offset + FramedBytes(size);
    if (touched > p.touched)
      p.touched = static_cast<std::uint32_t>(
          std::min<std::uint64_t>(internal::RoundUpToPages(touched), p.capacity));
    p.reserved_bytes = 0;
    p.head.store(end, std::memory_order_release);
  }

  std::span<const std::byte> Peek() noexcept {
    return PeekIn({At(consumer_.storage, 0), consumer_.capacity});
  }

  // Peek for a ring that another process may write into, its state included. `memory` is what Reset
  // was given: no byte outside of it is read. Each word of the state is read once, so that the
  // checked value is the used value. The record may still change: copy it before checking it.
  std::span<const std::byte> PeekIn(std::span<std::byte> memory) noexcept {
    Consumer& c = consumer_;
    const std::size_t capacity = UsableBytes(memory.size());
    if (capacity == 0) return {};
    std::uint64_t tail = c.tail.load(std::memory_order_relaxed);
    std::uint64_t head = Once(c.known_head);
    std::uint64_t origin = Once(c.origin);
    if (tail == head) {
      c.known_head = head = producer_.head.load(std::memory_order_acquire);
      if (tail == head) return {};
      c.origin = origin = Once(producer_.origin);  // does not change while the ring is not empty
    }
    std::uint64_t available = head - tail;
    if (available > capacity || available % kRecordAlignment != 0) return Abandon(head);
    std::size_t offset = Offset(tail, origin, capacity);
    Frame frame = Load(memory, offset);
    if (frame.kind == kMarker) {
      const std::size_t rest = capacity - offset;
      if (frame.size != rest || rest >= available) return Abandon(head);
      available -= rest;
      tail += rest;
      offset = 0;
      frame = Load(memory, offset);
    }
    const std::size_t framed = FramedBytes(frame.size);
    if (frame.kind != kRecord || frame.size == 0 || framed > available ||
        framed > capacity - offset)
      return Abandon(head);
    c.next = tail + framed;
    return memory.subspan(offset + sizeof(Frame), frame.size);
  }

  void Pop() noexcept {
    if (consumer_.next == 0) return;  // Peek has returned no record
    consumer_.tail.store(consumer_.next, std::memory_order_release);
    consumer_.next = 0;
  }

  [[nodiscard]] std::size_t used_bytes() const noexcept {
    // The tail is read before the head; otherwise it could be beyond the head.
    const std::uint64_t tail = consumer_.tail.load(std::memory_order_acquire);
    const std::uint64_t used = producer_.head.load(std::memory_order_acquire) - tail;
    return static_cast<std::size_t>(std::min<std::uint64_t>(used, consumer_.capacity));
  }

  // How often Peek found framing that no producer can have written, and emptied the ring. For the
  // consumer.
  [[nodiscard]] std::uint64_t corruptions() const noexcept { return consumer_.corruptions; }

 private:
  static constexpr std::size_t kRecordAlignment = 8;
  static constexpr std::uint32_t kRecord = 0x52425354;
  static constexpr std::uint32_t kMarker = 0x4D425354;

  // The header before each record, and the marker behind the last record that fits.
  struct Frame {
    std::uint32_t size;  // bytes of the record; for a marker, all bytes to the end of the storage
    std::uint32_t kind;
  };
  static_assert(sizeof(Frame) == kRecordAlignment);

  struct Producer {
    std::atomic<std::uint64_t> head{0};  // end of the published records
    std::uint64_t origin = 0;            // position of the front of the storage
    std::uint64_t known_tail = 0;        // the consumer's tail when last read
    std::uint64_t reserved_offset = 0;   // where the reserved record's framing goes
    std::uintptr_t storage = 0;          // address of the storage minus that of the ring
    std::size_t capacity = 0;
    std::uint32_t reserved_bytes = 0;
    std::uint32_t touched = 0;  // bytes ever written, from the front, in whole pages
    std::uint64_t unused = 0;
  };
  struct Consumer {
    std::atomic<std::uint64_t> tail{0};  // end of the popped records
    std::uint64_t origin = 0;            // the producer's, as of known_head
    std::uint64_t known_head = 0;        // the producer's head when last read
    std::uint64_t next = 0;              // tail after Pop; 0 if Peek has returned no record
    std::uintptr_t storage = 0;          // equal to the producer's
    std::size_t capacity = 0;
    std::uint64_t corruptions = 0;
    std::uint64_t unused = 0;
  };
  static_assert(sizeof(Producer) == kCacheLineBytes && sizeof(Consumer) == kCacheLineBytes);

  static constexpr std::size_t RoundUp(std::size_t value, std::size_t unit) {
    return (value + unit - 1) & ~(unit - 1);
  }
  static constexpr std::size_t FramedBytes(std::size_t bytes) {
    return sizeof(Frame) + RoundUp(bytes, kRecordAlignment);
  }
  static constexpr std::size_t UsableBytes(std::size_t bytes) {
    const std::size_t usable = std::bit_floor(std::min(bytes, kMaxCapacityBytes));
    return usable < 2 * sizeof(Frame) ? 0 : usable;
  }
  static std::size_t Offset(std::uint64_t position, std::uint64_t origin,
                            std::size_t capacity) noexcept {
    return static_cast<std::size_t>(position - origin) & (capacity - kRecordAlignment);
  }

  [[nodiscard]] std::uintptr_t Self() const noexcept {
    return reinterpret_cast<std::uintptr_t>(this);
  }
  // The address of `offset` in the storage. It is computed from integers, because the storage is
  // not part of this object.
  [[nodiscard]] std::byte* At(std::uintptr_t storage, std::size_t offset) const noexcept {
    return reinterpret_cast<std::byte*>(Self() + storage + offset);
  }

  void Store(std::size_t offset, Frame frame) noexcept {
    std::memcpy(At(producer_.storage, offset), &frame, sizeof(frame));
  }
  // Reads a word once, however often the compiler would like to.
  static std::uint64_t Once(const std::uint64_t& word) noexcept {
    return *static_cast<const volatile std::uint64_t*>(&word);
  }
  static Frame Load(std::span<const std::byte> memory, std::size_t offset) noexcept {
    return std::bit_cast<Frame>(
        Once(*reinterpret_cast<const std::uint64_t*>(memory.data() + offset)));
  }

  // Reads the tail again, and sets `offset` to that of `need` contiguous bytes. False if there are
  // none.
  STROBE_SIGNAL_SAFE bool MakeRoom(std::uint64_t head, std::size_t need,
                                   std::size_t& offset) noexcept {
    Producer& p = producer_;
    p.known_tail = consumer_.tail.load(std::memory_order_acquire);
    const std::uint64_t used = head - p.known_tail;
    if (used > p.capacity) return false;
    if (used == 0) {
      // The consumer reads the origin only after it has seen a head beyond its tail, and only a
      // later Commit publishes such a head.
      p.origin = head;
      offset = 0;
      return true;
    }
    const std::size_t rest = p.capacity - offset;
    const std::size_t skipped = need > rest ? rest : 0;
    if (used + skipped + need > p.capacity) return false;
    if (skipped != 0) {
      Store(offset, {static_cast<std::uint32_t>(rest), kMarker});
      offset = 0;
    }
    return true;
  }

  // Drops everything published so far, because the next record cannot be found behind invalid
  // framing.
  std::span<const std::byte> Abandon(std::uint64_t head) noexcept {
    Consumer& c = consumer_;
    ++c.corruptions;
    c.next = 0;
    c.known_head = head;
    c.tail.store(head, std::memory_order_release);
    return {};
  }

  Producer producer_;
  Consumer consumer_;
};
static_assert(sizeof(SpscRing) == 2 * kCacheLineBytes);
static_assert(SampleRing<SpscRing>);

}  // namespace strobe
