// HeapResource: memory for containers that may also lie in memory of another kind.
#pragma once

#include <cstddef>
#include <memory_resource>
#include <new>

#include "strobe/base/visibility.h"

namespace strobe {
namespace STROBE_HIDDEN internal {

// As std::pmr::new_delete_resource(), but by the `operator new` that this code is linked with. The
// C++ library's always takes the aligned form, which in a preloaded library is the program's: with
// an allocator that lacks aligned_alloc, its blocks are the C library's, and `free` is not.
class HeapResource final : public std::pmr::memory_resource {
 public:
  static HeapResource* Get() noexcept;

 private:
  void* do_allocate(std::size_t bytes, std::size_t alignment) override {
    return alignment <= __STDCPP_DEFAULT_NEW_ALIGNMENT__
               ? ::operator new(bytes)
               : ::operator new(bytes, std::align_val_t(alignment));
  }
  void do_deallocate(void* block, std::size_t /*bytes*/, std::size_t alignment) override {
    if (alignment <= __STDCPP_DEFAULT_NEW_ALIGNMENT__) {
      ::operator delete(block);
    } else {
      ::operator delete(block, std::align_val_t(alignment));
    }
  }
  [[nodiscard]] bool do_is_equal(const std::pmr::memory_resource& other) const noexcept override {
    return this == &other;
  }
};

// Never destroyed: containers of a session may outlive static objects.
union ImmortalHeapResource {
  constexpr ImmortalHeapResource() noexcept : resource() {}
  ~ImmortalHeapResource() {}  // NOLINT(modernize-use-equals-default)
  HeapResource resource;
};
inline constinit ImmortalHeapResource immortal_heap_resource;

inline HeapResource* HeapResource::Get() noexcept { return &immortal_heap_resource.resource; }

}  // namespace internal
}  // namespace strobe
