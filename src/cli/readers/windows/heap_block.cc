#include <malloc.h>

#include "readers/memory_limit.h"

std::size_t strobe::internal::HeapBlockBytes(void* block) noexcept { return _msize(block); }
