// All forms of `operator new` and `operator delete`, on the malloc family's allocator. Weak, as the
// malloc family. Not in a preloaded library: it could not see all calls of the program's own.
#include <cstddef>
#include <new>

#include "allocate.h"

using strobe::internal::Allocated;
using strobe::internal::NextAlignedNew;
using strobe::internal::NextDelete;
using strobe::internal::NextNew;
using strobe::internal::NoteFree;

namespace {

// Asks the program's handler for memory until there is some. Throws if there is no handler.
template <class Make>
[[gnu::noinline]] void* MakeAfterHandler(const Make& make) {
  while (true) {
    const std::new_handler handler = std::get_new_handler();
    if (handler == nullptr) throw std::bad_alloc();
    handler();
    if (void* const block = make(); block != nullptr) return block;
  }
}
template <class Make>
STROBE_ALWAYS_INLINE void* New(std::size_t size, const Make& make) {
  return Allocated(size, [&make] {
    void* const block = make();
    if (block == nullptr) [[unlikely]]
      return MakeAfterHandler(make);
    return block;
  });
}

// The same, but nullptr instead of an exception.
template <class Make>
[[gnu::noinline]] void* MakeOrNull(const Make& make) noexcept {
  try {
    return MakeAfterHandler(make);
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}
template <class Make>
STROBE_ALWAYS_INLINE void* NewOrNull(std::size_t size, const Make& make) noexcept {
  return Allocated(size, [&make] {
    void* const block = make();
    if (block == nullptr) [[unlikely]]
      return MakeOrNull(make);
    return block;
  });
}

// Zero bytes are one byte, so that each allocation has an address, whatever the allocator.
STROBE_ALWAYS_INLINE auto Plain(std::size_t size) {
  return [size = size + (size == 0 ? 1 : 0)] { return NextNew(size); };
}
// A multiple of the alignment, as aligned_alloc asks for.
STROBE_ALWAYS_INLINE auto Aligned(std::size_t size, std::align_val_t alignment) {
  return [size, multiple = static_cast<std::size_t>(alignment)] {
    const std::size_t padded = (size + (size == 0 ? 1 : 0) + multiple - 1) & ~(multiple - 1);
    return NextAlignedNew(multiple, padded < size ? size : padded);
  };
}

STROBE_ALWAYS_INLINE void Delete(void* block) noexcept {
  NoteFree(block);
  NextDelete(block);
}

}  // namespace

[[gnu::weak]] void* operator new(std::size_t size) { return New(size, Plain(size)); }
[[gnu::weak]] void* operator new[](std::size_t size) { return New(size, Plain(size)); }
[[gnu::weak]] void* operator new(std::size_t size, const std::nothrow_t& /*tag*/) noexcept {
  return NewOrNull(size, Plain(size));
}
[[gnu::weak]] void* operator new[](std::size_t size, const std::nothrow_t& /*tag*/) noexcept {
  return NewOrNull(size, Plain(size));
}
[[gnu::weak]] void* operator new(std::size_t size, std::align_val_t alignment) {
  return New(size, Aligned(size, alignment));
}
[[gnu::weak]] void* operator new[](std::size_t size, std::align_val_t alignment) {
  return New(size, Aligned(size, alignment));
}
[[gnu::weak]] void* operator new(std::size_t size, std::align_val_t alignment,
                                 const std::nothrow_t& /*tag*/) noexcept {
  return NewOrNull(size, Aligned(size, alignment));
}
[[gnu::weak]] void* operator new[](std::size_t size, std::align_val_t alignment,
                                   const std::nothrow_t& /*tag*/) noexcept {
  return NewOrNull(size, Aligned(size, alignment));
}

[[gnu::weak]] void operator delete(void* block) noexcept { Delete(block); }
[[gnu::weak]] void operator delete[](void* block) noexcept { Delete(block); }
[[gnu::weak]] void operator delete(void* block, std::size_t /*size*/) noexcept { Delete(block); }
[[gnu::weak]] void operator delete[](void* block, std::size_t /*size*/) noexcept { Delete(block); }
[[gnu::weak]] void operator delete(void* block, std::align_val_t /*alignment*/) noexcept {
  Delete(block);
}
[[gnu::weak]] void operator delete[](void* block, std::align_val_t /*alignment*/) noexcept {
  Delete(block);
}
[[gnu::weak]] void operator delete(void* block, std::size_t /*size*/,
                                   std::align_val_t /*alignment*/) noexcept {
  Delete(block);
}
[[gnu::weak]] void operator delete[](void* block, std::size_t /*size*/,
                                     std::align_val_t /*alignment*/) noexcept {
  Delete(block);
}
[[gnu::weak]] void operator delete(void* block, const std::nothrow_t& /*tag*/) noexcept {
  Delete(block);
}
[[gnu::weak]] void operator delete[](void* block, const std::nothrow_t& /*tag*/) noexcept {
  Delete(block);
}
[[gnu::weak]] void operator delete(void* block, std::align_val_t /*alignment*/,
                                   const std::nothrow_t& /*tag*/) noexcept {
  Delete(block);
}
[[gnu::weak]] void operator delete[](void* block, std::align_val_t /*alignment*/,
                                     const std::nothrow_t& /*tag*/) noexcept {
  Delete(block);
}
