// A program and the library that it links must agree on the C++ library's containers: with
// -D_GLIBCXX_DEBUG they have other layouts. A program that does not agree is refused by the linker,
// with a name that says why, instead of crashing.
#pragma once

namespace strobe::internal {

#ifdef _GLIBCXX_DEBUG
#define STROBE_CONTAINERS library_is_built_with_GLIBCXX_DEBUG
#else
#define STROBE_CONTAINERS library_is_built_without_GLIBCXX_DEBUG
#endif

// The library defines the one that is true of it.
extern const char STROBE_CONTAINERS;
// Each file that includes this asks for it.
[[gnu::used]] inline const char* const containers_of_library = &STROBE_CONTAINERS;

}  // namespace strobe::internal
