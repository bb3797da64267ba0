#include "strobe/worker/shared/shared_area.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <climits>
#include <cstring>
#include <new>
#include <string>

#include "absl/strings/str_cat.h"
#include "strobe/base/page.h"
#include "strobe/clock/system_clock.h"
#include "strobe/provider/level_memory.h"

namespace strobe::internal {
namespace {

std::uint64_t AreaBytes(std::uint64_t chunks_offset, std::uint32_t chunks,
                        std::uint64_t chunk_bytes) {
  return chunks_offset + chunks * chunk_bytes;
}

absl::Status NoMemory(const char* what) {
  return absl::ResourceExhaustedError(
      absl::StrCat("no memory to share with a worker: ", what, ": ", std::strerror(errno)));
}

long Futex(const std::atomic<std::uint32_t>& word, int operation, std::uint32_t value,
           const timespec* timeout) {
  return syscall(SYS_futex, &word, operation, value, timeout, nullptr, 0);
}

// Waits until the word is not `seen` any more, or is waked, at most for that time.
void Await(const std::atomic<std::uint32_t>& word, std::uint32_t seen, std::int64_t timeout_ns) {
  constexpr std::int64_t kNsPerSecond = 1'000'000'000;
  const timespec timeout{.tv_sec = timeout_ns / kNsPerSecond, .tv_nsec = timeout_ns % kNsPerSecond};
  Futex(word, FUTEX_WAIT, seen, &timeout);
}

std::uint64_t MarkOf(std::uint32_t worker) { return SharedAreaHeader::kWorkerMark | worker; }

}  // namespace

std::uint64_t SharedArea::RegistrationsOffset(std::uint32_t chunks) {
  return RoundUpToPages(sizeof(SharedAreaHeader) + chunks * sizeof(std::uint64_t));
}
std::uint64_t SharedArea::CachesOffset(std::uint32_t chunks) {
  return RoundUpToPages(RegistrationsOffset(chunks) +
                        std::uint64_t{chunks} * kChunkChannels * sizeof(SharedRegistration));
}
std::uint64_t SharedArea::ContextsOffset(std::uint32_t chunks) {
  return CachesOffset(chunks) + SharedCaches::kCaches * SharedCaches::CacheBytes();
}
std::uint64_t SharedArea::RangesOffset(std::uint32_t chunks) {
  return RoundUpToPages(ContextsOffset(chunks) + sizeof(SharedContexts));
}
std::uint64_t SharedArea::LevelsOffset(std::uint32_t chunks) {
  return RoundUpToPages(RangesOffset(chunks) + sizeof(SharedRanges));
}
std::uint64_t SharedArea::ChunksOffset(std::uint32_t chunks) {
  return LevelsOffset(chunks) + RoundUpToPages(LevelMemory::kBytes);
}

SharedCaches SharedArea::Caches() const {
  const std::uint64_t offset = CachesOffset(chunks_);
  return {.memory = {memory_ + offset, SharedCaches::kCaches * SharedCaches::CacheBytes()},
          .address_in_program = header_->address + offset};
}

// Both are atomic words and bytes, and begin as zeroes.
SharedContexts& SharedArea::Contexts() const {
  return *reinterpret_cast<SharedContexts*>(memory_ + ContextsOffset(chunks_));
}

SharedRanges& SharedArea::Ranges() const {
  return *reinterpret_cast<SharedRanges*>(memory_ + RangesOffset(chunks_));
}

std::span<std::byte> SharedArea::Levels() const {
  if (memory_ == nullptr) return {};
  return {memory_ + LevelsOffset(chunks_), LevelMemory::kBytes};
}

void SharedArea::Place(std::byte* memory) {
  memory_ = memory;
  madvise(memory, bytes_, MADV_DONTDUMP);
  header_ = reinterpret_cast<SharedAreaHeader*>(memory);
  changed_ = reinterpret_cast<std::atomic<std::uint64_t>*>(memory + sizeof(SharedAreaHeader));
  registrations_ = reinterpret_cast<SharedRegistration*>(memory + RegistrationsOffset(chunks_));
}

absl::Status SharedArea::Available() {
  for (const auto& make : {+[] { return memfd_create("strobe", MFD_CLOEXEC | MFD_ALLOW_SEALING); },
                           +[] { return socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0); }}) {
    const int file = make();
    if (file < 0) {
      return absl::UnimplementedError(
          absl::StrCat("the system refuses memory that processes share: ", std::strerror(errno)));
    }
    close(file);
  }
  return absl::OkStatus();
}

absl::StatusOr<SharedArea> SharedArea::Create(std::uint32_t chunks, std::uint32_t chunk_channels,
                                              std::uint64_t chunk_bytes) {
  if (chunks == 0 || chunks > kMaxChunks || chunk_channels != kChunkChannels ||
      chunk_bytes % kPageBytes != 0)
    return absl::InvalidArgumentError("a shared area of that layout is not possible");
  SharedArea area;
  area.chunks_ = chunks;
  area.chunk_bytes_ = chunk_bytes;
  area.file_ = KnownFile::Of(memfd_create("strobe-channels", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  const int descriptor = area.descriptor();
  if (descriptor < 0) return NoMemory("memfd_create");
  const std::uint64_t bytes = AreaBytes(ChunksOffset(chunks), chunks, chunk_bytes);
  void* memory = MAP_FAILED;
  const bool is_made =
      ftruncate(descriptor, static_cast<off_t>(bytes)) == 0 &&
      fcntl(descriptor, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) == 0;
  if (is_made) memory = mmap(nullptr, bytes, PROT_NONE, MAP_SHARED, descriptor, 0);
  if (memory == MAP_FAILED) {
    const absl::Status status = NoMemory("mmap");
    area.file_.Close();
    return status;
  }
  area.bytes_ = bytes;
  area.Place(static_cast<std::byte*>(memory));
  if (!area.Allow(0, RegistrationsOffset(chunks)) ||
      !area.Allow(CachesOffset(chunks), ChunksOffset(chunks))) {
    const absl::Status status = NoMemory("mprotect");
    area.Unmap();
    return status;
  }
  auto& header = *new (memory) SharedAreaHeader;
  header.chunks = chunks;
  header.chunk_channels = chunk_channels;
  header.chunk_bytes = chunk_bytes;
  header.address = reinterpret_cast<std::uintptr_t>(memory);
  return area;
}

bool SharedArea::Allow(std::uint64_t offset, std::uint64_t limit) const {
  // The system's pages may be larger than kPageBytes.
  const auto page_bytes = static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
  const std::uint64_t first = offset / page_bytes * page_bytes;
  return mprotect(memory_ + first, limit - first, PROT_READ | PROT_WRITE) == 0;
}

bool SharedArea::OpenChunk(std::uint32_t chunk) const {
  const std::uint64_t registrations =
      RegistrationsOffset(chunks_) + chunk * kChunkChannels * sizeof(SharedRegistration);
  const std::uint64_t offset = ChunksOffset(chunks_) + chunk * chunk_bytes_;
  return chunk < chunks_ &&
         Allow(registrations, registrations + kChunkChannels * sizeof(SharedRegistration)) &&
         Allow(offset, offset + chunk_bytes_);
}

absl::StatusOr<SharedArea> SharedArea::Adopt(int received, std::uint32_t chunk_channels,
                                             std::uint64_t chunk_bytes) {
  KnownFile file = KnownFile::Of(received);
  const int descriptor = file.number;
  const auto refuse = [&](const char* why) {
    file.Close();
    return absl::InvalidArgumentError(absl::StrCat("the shared memory ", why));
  };
  const int seals = fcntl(descriptor, F_GET_SEALS);
  if (seals < 0 || (seals & F_SEAL_SHRINK) == 0) return refuse("is not sealed against shrinking");
  struct stat info {};
  if (fstat(descriptor, &info) != 0 ||
      static_cast<std::uint64_t>(info.st_size) < sizeof(SharedAreaHeader))
    return refuse("is too short");
  // A copy: the program may change the header between the check and the use.
  SharedAreaHeader header{};
  constexpr std::size_t kFixedBytes = offsetof(SharedAreaHeader, changes);
  if (pread(descriptor, static_cast<void*>(&header), kFixedBytes, 0) != kFixedBytes)
    return refuse("cannot be read");
  const bool is_ours =
      header.magic == SharedAreaHeader::kMagic && header.version == SharedAreaHeader::kVersion &&
      header.registration_bytes == sizeof(SharedRegistration) &&
      header.chunk_channels == kChunkChannels && chunk_channels == kChunkChannels &&
      header.chunk_bytes == chunk_bytes && header.chunks > 0 && header.chunks <= kMaxChunks;
  if (!is_ours) return refuse("has another layout than this worker's");
  const std::uint64_t bytes = AreaBytes(ChunksOffset(header.chunks), header.chunks, chunk_bytes);
  if (static_cast<std::uint64_t>(info.st_size) < bytes) return refuse("is too short");
  void* const memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
  if (memory == MAP_FAILED) return refuse("cannot be mapped");
  SharedArea area;
  area.file_ = file;
  area.chunks_ = header.chunks;
  area.chunk_bytes_ = chunk_bytes;
  area.bytes_ = bytes;
  area.Place(static_cast<std::byte*>(memory));
  return area;
}

void SharedArea::Unmap() {
  if (memory_ != nullptr) munmap(memory_, bytes_);
  file_.Close();
  *this = SharedArea();
}

SharedRegistration* SharedArea::At(std::uint32_t channel) const {
  return channel < chunks_ * kChunkChannels ? &registrations_[channel] : nullptr;
}

std::span<std::byte> SharedArea::Chunk(std::uint32_t chunk) const {
  if (chunk >= chunks_) return {};
  return {memory_ + ChunksOffset(chunks_) + chunk * chunk_bytes_,
          static_cast<std::size_t>(chunk_bytes_)};
}

void SharedArea::Announce(std::uint32_t channel) const {
  changed_[channel / kChunkChannels].fetch_or(std::uint64_t{1} << channel % kChunkChannels,
                                              std::memory_order_acq_rel);
  NoteChange();
}

void SharedArea::NoteChange() const {
  header_->changes.fetch_add(1, std::memory_order_seq_cst);
  if (header_->is_awaited.load(std::memory_order_seq_cst) != 0) Wake();
}

void SharedArea::Wake() const { Futex(header_->changes, FUTEX_WAKE, INT_MAX, nullptr); }

void SharedArea::AwaitChange(std::uint32_t seen, std::int64_t timeout_ns) const {
  header_->is_awaited.store(1, std::memory_order_seq_cst);
  Await(header_->changes, seen, timeout_ns);
  header_->is_awaited.store(0, std::memory_order_relaxed);
}

void SharedArea::TakeBack(std::int64_t timeout_ns) const {
  header_->lost_worker.store(header_->worker.load(), std::memory_order_seq_cst);
  NoteChange();
  const SystemClock clock;
  const std::int64_t end_ns = clock.MonotonicNs() + timeout_ns;
  for (std::int64_t left_ns = timeout_ns; left_ns > 0; left_ns = end_ns - clock.MonotonicNs()) {
    const std::uint32_t seen = header_->changes.load(std::memory_order_seq_cst);
    if (header_->worker.load(std::memory_order_seq_cst) == MarkOf(0)) break;
    Await(header_->changes, seen, left_ns);
  }
  GiveTo(0);
}

void SharedArea::GiveTo(std::uint32_t worker) const {
  header_->worker.store(MarkOf(worker), std::memory_order_seq_cst);
}

bool SharedArea::IsOf(std::uint32_t worker) const {
  const std::uint64_t mark = header_->worker.load(std::memory_order_acquire);
  return mark == MarkOf(worker) || mark >> 32 != MarkOf(0) >> 32;
}

bool SharedArea::IsWantedFrom(std::uint32_t worker) const {
  return !IsOf(worker) || header_->lost_worker.load() == MarkOf(worker);
}

bool SharedArea::GiveBack(std::uint32_t worker) const {
  std::uint64_t mark = MarkOf(worker);
  const bool is_done = header_->worker.compare_exchange_strong(mark, MarkOf(0)) || IsOf(worker);
  header_->changes.fetch_add(1, std::memory_order_seq_cst);
  Wake();
  return is_done;
}

void SharedArea::Leave() const {
  static_cast<void>(mmap(memory_, bytes_, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0));
}

}  // namespace strobe::internal
