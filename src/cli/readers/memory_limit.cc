#include "memory_limit.h"

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <new>

#include "absl/strings/str_cat.h"

namespace strobe::internal {
namespace {

// Of one thread. What it frees may be older than its limit, so the sum may be less than 0.
struct Account {
  std::int64_t held_bytes = 0;
  std::int64_t limit_bytes = std::numeric_limits<std::int64_t>::max();
};
constinit thread_local Account account;
constinit thread_local bool is_measuring = false;

// An allocator may allocate itself when it is first asked: tcmalloc does. That counts nothing.
std::int64_t BytesOf(void* block) {
  if (is_measuring) return 0;
  is_measuring = true;
  const std::size_t bytes = HeapBlockBytes(block);
  is_measuring = false;
  return static_cast<std::int64_t>(bytes);
}

// nullptr if there is none.
void* AllocateIfThereIs(std::size_t bytes) noexcept {
  constexpr std::size_t kMost = std::numeric_limits<std::int64_t>::max();
  const std::int64_t room = account.limit_bytes - std::max<std::int64_t>(account.held_bytes, 0);
  void* const block = bytes > kMost || static_cast<std::int64_t>(bytes) > room
                          ? nullptr
                          : std::malloc(std::max<std::size_t>(bytes, 1));
  if (block != nullptr) account.held_bytes += BytesOf(block);
  return block;
}

// Without callers where a sanitizer brings the functions below.
[[maybe_unused]] void* Allocate(std::size_t bytes) {
  void* const block = AllocateIfThereIs(bytes);
  if (block == nullptr) throw std::bad_alloc();
  return block;
}

[[maybe_unused]] void Free(void* block) noexcept {
  if (block == nullptr) return;
  account.held_bytes -= BytesOf(block);
  std::free(block);
}

}  // namespace

MemoryLimit::MemoryLimit(std::size_t asked_bytes, std::size_t least_bytes)
    : is_asked_(asked_bytes != 0),
      bytes_(std::min(is_asked_ ? asked_bytes : least_bytes, kMaxProfileBytes)) {
  account = {.held_bytes = 0, .limit_bytes = static_cast<std::int64_t>(bytes_)};
}

MemoryLimit::~MemoryLimit() { account = {}; }

void MemoryLimit::HasFileBytes(std::uint64_t bytes) {
  if (is_asked_) return;
  const std::uint64_t wanted = std::min(bytes, std::uint64_t{kMaxProfileBytes}) * kMemoryOfFileByte;
  bytes_ =
      std::max(bytes_, static_cast<std::size_t>(std::min<std::uint64_t>(wanted, kMaxProfileBytes)));
  account.limit_bytes = static_cast<std::int64_t>(bytes_);
}

absl::Status MemoryLimit::Exceeded() const {
  return absl::ResourceExhaustedError(
      absl::StrCat("it needs more than ", bytes_ >> 20, " MiB of memory",
                   bytes_ < kMaxProfileBytes ? "; --max-memory allows more" : ""));
}

}  // namespace strobe::internal

// Clang's ThreadSanitizer brings these functions, and lets nothing take their place: with it, no
// allocation asks.
#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define STROBE_HAS_OTHER_NEW
#endif
#endif
#ifndef STROBE_HAS_OTHER_NEW

// The command's memory, in place of the standard library's: all forms but those for more than the
// usual alignment, which no reader asks for. Other libraries' forms need not call these.
void* operator new(std::size_t bytes) { return strobe::internal::Allocate(bytes); }
void* operator new[](std::size_t bytes) { return strobe::internal::Allocate(bytes); }
void* operator new(std::size_t bytes, const std::nothrow_t& /*unused*/) noexcept {
  return strobe::internal::AllocateIfThereIs(bytes);
}
void* operator new[](std::size_t bytes, const std::nothrow_t& /*unused*/) noexcept {
  return strobe::internal::AllocateIfThereIs(bytes);
}
void operator delete(void* block) noexcept { strobe::internal::Free(block); }
void operator delete[](void* block) noexcept { strobe::internal::Free(block); }
void operator delete(void* block, std::size_t /*bytes*/) noexcept { strobe::internal::Free(block); }
void operator delete[](void* block, std::size_t /*bytes*/) noexcept {
  strobe::internal::Free(block);
}
void operator delete(void* block, const std::nothrow_t& /*unused*/) noexcept {
  strobe::internal::Free(block);
}
void operator delete[](void* block, const std::nothrow_t& /*unused*/) noexcept {
  strobe::internal::Free(block);
}

#endif
