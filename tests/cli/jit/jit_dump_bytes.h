// The records of a jitdump file.
#pragma once

#include <cstdint>
#include <string_view>

#include "../perf_bytes.h"

namespace strobe::internal {

inline Bytes DumpHeader(std::uint64_t flags = 0) {
  return Join({HalfWord(0x4A695444), HalfWord(1), HalfWord(40), HalfWord(62), HalfWord(0),
               HalfWord(42), Word(0), Word(flags)});
}
inline Bytes DumpRecord(std::uint32_t kind, std::uint64_t time, const Bytes& body) {
  return Join(
      {HalfWord(kind), HalfWord(static_cast<std::uint32_t>(body.size() + 16)), Word(time), body});
}
// Code with a name, and some bytes of it.
inline Bytes DumpLoad(std::uint64_t time, std::uint64_t start, std::uint64_t bytes,
                      std::string_view name) {
  return DumpRecord(0, time,
                    Join({HalfWord(42), HalfWord(42), Words({start, start, bytes, 1}),
                          Bytes(name.begin(), name.end()), Bytes(1), Bytes(5, 0xCC)}));
}
inline Bytes DumpMove(std::uint64_t time, std::uint64_t from, std::uint64_t to,
                      std::uint64_t bytes) {
  return DumpRecord(1, time, Join({HalfWord(42), HalfWord(42), Words({0, from, to, bytes, 1})}));
}

}  // namespace strobe::internal
