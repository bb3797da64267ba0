#include "linkage_stub.h"

#include <algorithm>
#include <cstring>

namespace strobe::internal {
namespace {

constexpr std::uint64_t kMaxStubBytes = 24;  // aarch64 with signed pointers

// Ends the previous stub at the start of this one.
void Append(std::vector<LinkageStub>& stubs, LinkageStub stub) {
  if (!stubs.empty()) stubs.back().end = std::min(stubs.back().end, stub.address);
  stubs.push_back(stub);
}

std::uint32_t Word(std::span<const std::byte> code, std::size_t at) {
  std::uint32_t word;
  std::memcpy(&word, code.data() + at, sizeof(word));
  return word;
}

}  // namespace

std::vector<LinkageStub> FindX86LinkageStubs(std::uint64_t address,
                                             std::span<const std::byte> code) {
  constexpr std::size_t kJumpBytes = 6;  // jmp *displacement(%rip)
  // A stub starts with its jump; or with endbr64, then the jump, which may have a prefix.
  constexpr std::uint64_t kAlignment = 8;
  std::vector<LinkageStub> stubs;
  for (std::size_t i = 0; i + kJumpBytes <= code.size(); ++i) {
    if (code[i] != std::byte{0xFF} || code[i + 1] != std::byte{0x25}) continue;
    const auto displacement =
        static_cast<std::int64_t>(static_cast<std::int32_t>(Word(code, i + 2)));
    const std::uint64_t start = address + i / kAlignment * kAlignment;
    Append(stubs, {start, std::min(start + kMaxStubBytes, address + code.size()),
                   address + i + kJumpBytes + static_cast<std::uint64_t>(displacement)});
    i += kJumpBytes - 1;
  }
  return stubs;
}

std::vector<LinkageStub> FindAarch64LinkageStubs(std::uint64_t address,
                                                 std::span<const std::byte> code) {
  constexpr std::size_t kWordBytes = 4;
  constexpr std::uint32_t kBranchTarget = 0xD503245F;  // bti c
  constexpr std::uint64_t kPageBytes = 4096;
  std::vector<LinkageStub> stubs;
  for (std::size_t i = 0; i + 2 * kWordBytes <= code.size(); i += kWordBytes) {
    const std::uint32_t page = Word(code, i);
    const std::uint32_t load = Word(code, i + kWordBytes);
    if ((page & 0x9F00001F) != 0x90000010 || (load & 0xFFC003FF) != 0xF9400211)
      continue;  // adrp x16, page; ldr x17, [x16, offset]
    const std::uint32_t pages = (page >> 3 & 0x1FFFFC) | (page >> 29 & 3);
    constexpr std::uint32_t kSign = 1 << 20;
    const std::uint64_t distance = (static_cast<std::uint64_t>(pages ^ kSign) - kSign) * kPageBytes;
    const std::uint64_t offset = (load >> 10 & 0xFFF) * std::uint64_t{8};
    const bool is_target = i != 0 && Word(code, i - kWordBytes) == kBranchTarget;
    const std::uint64_t start = address + i - (is_target ? kWordBytes : 0);
    Append(stubs, {start, std::min(start + kMaxStubBytes, address + code.size()),
                   ((address + i) & ~(kPageBytes - 1)) + distance + offset});
  }
  return stubs;
}

}  // namespace strobe::internal
