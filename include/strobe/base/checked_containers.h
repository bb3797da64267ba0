// A program and the library that it links must agree on the C++ library's containers: with
// -D_GLIBCXX_DEBUG they have other layouts. A program that does not agree is refused by the linker,
// with a name that says why, instead of crashing.
#pragma once

namespace strobe::internal {

// The library defines the one that is true of it. Each file that includes this asks for the one
// that is true of the program.
#ifdef _GLIBCXX_DEBUG
extern const char library_is_built_with_GLIBCXX_DEBUG;
[[gnu::used]] inline const char* const containers_of_library = &library_is_built_with_GLIBCXX_DEBUG;
#else
extern const char library_is_built_without_GLIBCXX_DEBUG;
[[gnu::used]] inline const char* const containers_of_library =
    &library_is_built_without_GLIBCXX_DEBUG;
#endif

}  // namespace strobe::internal
