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

}  // namespace strobe::internal
