// The stubs of a procedure linkage table: code without a symbol of its own, which jumps to where a
// slot of data points.
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

// The stubs in the bytes of a table that is mapped at `address`, in order. What only runs while a
// function is bound has no slot of its own and is left out: the head of the table, and the first of
// the two stubs that code with indirect branch tracking has for each function.
std::vector<LinkageStub> FindX86LinkageStubs(std::uint64_t address,
                                             std::span<const std::byte> code);
std::vector<LinkageStub> FindAarch64LinkageStubs(std::uint64_t address,
                                                 std::span<const std::byte> code);

}  // namespace strobe::internal
