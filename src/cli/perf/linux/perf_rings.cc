#include "perf_rings.h"

#include <linux/perf_event.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>

#include "perf/perf_fields.h"
#include "strobe/base/atomic_access.h"

namespace strobe::internal {
namespace {

constexpr std::size_t kRingHeaderBytes = 8;

// The first page of a ring. Its words are shared with the kernel.
perf_event_mmap_page& PlacesOf(std::span<std::byte> mapping) {
  return *reinterpret_cast<perf_event_mmap_page*>(mapping.data());
}

}  // namespace

void PerfRingReader::Begin(std::uint64_t tail, std::uint64_t head) {
  tail_ = tail;
  head_ = head;
}

// `count` is at most the ring's size.
std::span<const std::byte> PerfRingReader::Bytes(std::uint64_t at, std::size_t count) {
  const auto place = static_cast<std::size_t>(at & (data_.size() - 1));
  if (data_.size() - place >= count) return data_.subspan(place, count);
  const std::size_t first = data_.size() - place;
  joined_.resize(count);
  std::memcpy(joined_.data(), data_.data() + place, first);
  std::memcpy(joined_.data() + first, data_.data(), count - first);
  return joined_;
}

bool PerfRingReader::Skip() {
  ++broken_;
  tail_ = head_;
  return false;
}

bool PerfRingReader::Next(PerfRecord& record) {
  const std::uint64_t left = head_ - tail_;
  if (left == 0) return false;
  if (left > data_.size() || left < kRingHeaderBytes) return Skip();
  PerfFields fields(Bytes(tail_, kRingHeaderBytes));
  record.type = static_cast<PerfRecordType>(fields.Take<std::uint32_t>());
  record.misc = fields.Take<std::uint16_t>();
  const std::size_t size = fields.Take<std::uint16_t>();
  if (size < kRingHeaderBytes || size > left) return Skip();
  record.body = Bytes(tail_, size).subspan(kRingHeaderBytes);
  tail_ += size;
  return true;
}

absl::StatusOr<std::unique_ptr<PerfRing>> PerfRing::Map(int descriptor, std::size_t data_bytes) {
  const auto page_bytes = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  const std::size_t bytes = page_bytes + data_bytes;
  void* const at = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
  if (at == MAP_FAILED) {
    return errno == EPERM ? absl::PermissionDeniedError("a ring needs more locked memory")
                          : absl::UnavailableError(std::strerror(errno));
  }
  return std::unique_ptr<PerfRing>(
      new PerfRing(descriptor, {static_cast<std::byte*>(at), bytes}, page_bytes));
}

PerfRing::~PerfRing() { munmap(mapping_.data(), mapping_.size()); }

std::uint64_t PerfRing::head() const {
  return AtomicLoad(PlacesOf(mapping_).data_head, std::memory_order_acquire);
}

void PerfRing::Release() {
  AtomicStore(PlacesOf(mapping_).data_tail, reader_.tail(), std::memory_order_release);
}

}  // namespace strobe::internal
