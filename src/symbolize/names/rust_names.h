// The names of functions of Rust, in both ways in which its compiler writes them. Each takes
// bounded time and memory whatever the name is.
#pragma once

#include <string>
#include <string_view>

namespace strobe::internal {

// The path that a symbol "_R…" stands for (RFC 2603), without the hashes of crates, as in
// "<core::option::Option<T>>::map::<u8>". Empty if it is none, or exceeds a limit of
// MangledText.
std::string RustName(std::string_view symbol);

// Before that, the compiler wrote paths as C++ names, with a hash as the last part, and with what
// no such name can have in words, as "$LT$" for "<". Takes a name that is demangled as one of C++.
// The name itself if it has no such hash.
std::string LegacyRustName(std::string_view demangled);

}  // namespace strobe::internal
