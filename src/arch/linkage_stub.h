// The stubs of a procedure linkage table: code without symbols. A stub jumps through a pointer in
// data, its slot.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace strobe::internal {

struct LinkageStub {
  std::uint64_t address = 0;
  std::uint64_t end = 0;   // one past its last byte
  std::uint64_t slot = 0;  // address of the pointer that it jumps through
};

// The stubs in the bytes of a table that is mapped at `address`, in order. Code that only runs
// while a function is bound has no slot and is left out: the head of the table, and the first of
// the two stubs for each function in code with indirect branch tracking.
std::vector<LinkageStub> FindX86LinkageStubs(std::uint64_t address,
                                             std::span<const std::byte> code);
std::vector<LinkageStub> FindAarch64LinkageStubs(std::uint64_t address,
                                                 std::span<const std::byte> code);

// From `offset` on, up to the next row, code of a stub has pushed so many words above the return
// address of its call; the code behind a stub is none, and has kNoStub.
struct StubRow {
  static constexpr std::uint32_t kNoStub = ~std::uint32_t{0};
  std::size_t offset = 0;
  std::uint32_t pushed_words = 0;
};
// Of the stubs on x86-64 in `text`, as GNU ld, gold, lld and mold write them, with and without
// indirect branch tracking, and of the head of their table. `text` may be any code, so that only
// whole stubs of known shapes count. In a table, each jump is that of a stub, whatever its shape.
std::vector<StubRow> FindX86StubRows(std::span<const std::uint8_t> text);

}  // namespace strobe::internal
