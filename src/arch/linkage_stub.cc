#include "linkage_stub.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <iterator>

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

// The shape of a stub: bytes, where kAny is a byte of a number; and after how many bytes it has
// pushed one word more.
constexpr std::int16_t kAny = -1;
struct StubShape {
  std::span<const std::int16_t> code;
  std::uint32_t pushed_before = 0;      // words, by the stub that jumped here
  std::array<std::size_t, 2> pushes{};  // 0: none
};

// lld and GNU ld: jmp *slot(%rip); push index; jmp head.
constexpr std::int16_t kLazy[] = {0xFF, 0x25, kAny, kAny, kAny, kAny, 0x68, kAny,
                                  kAny, kAny, kAny, 0xE9, kAny, kAny, kAny, kAny};
// Their head: push *(%rip); jmp *(%rip).
constexpr std::int16_t kHead[] = {0xFF, 0x35, kAny, kAny, kAny, kAny,
                                  0xFF, 0x25, kAny, kAny, kAny, kAny};
// With branch tracking: endbr64; push index; jmp head, which may have a prefix.
constexpr std::int16_t kTrackedLazy[] = {0xF3, 0x0F, 0x1E, 0xFA, 0x68, kAny, kAny,
                                         kAny, kAny, 0xE9, kAny, kAny, kAny, kAny};
constexpr std::int16_t kTrackedLazyBnd[] = {0xF3, 0x0F, 0x1E, 0xFA, 0x68, kAny, kAny, kAny,
                                            kAny, 0xF2, 0xE9, kAny, kAny, kAny, kAny};
// endbr64; jmp *slot(%rip), which may have a prefix.
constexpr std::int16_t kTracked[] = {0xF3, 0x0F, 0x1E, 0xFA, 0xFF, 0x25, kAny, kAny, kAny, kAny};
constexpr std::int16_t kTrackedBnd[] = {0xF3, 0x0F, 0x1E, 0xFA, 0xF2, 0xFF,
                                        0x25, kAny, kAny, kAny, kAny};
// mold: endbr64; mov index, %r11d; jmp *slot(%rip).
constexpr std::int16_t kMold[] = {0xF3, 0x0F, 0x1E, 0xFA, 0x41, 0xBB, kAny, kAny,
                                  kAny, kAny, 0xFF, 0x25, kAny, kAny, kAny, kAny};
// Its head: endbr64; push %r11; push *(%rip); jmp *(%rip).
constexpr std::int16_t kMoldHead[] = {0xF3, 0x0F, 0x1E, 0xFA, 0x41, 0x53, 0xFF, 0x35, kAny,
                                      kAny, kAny, kAny, 0xFF, 0x25, kAny, kAny, kAny, kAny};
// Bound when the program begins: jmp *slot(%rip); a nop of two bytes, or two int3.
constexpr std::int16_t kBound[] = {0xFF, 0x25, kAny, kAny, kAny, kAny, 0x66, 0x90};
constexpr std::int16_t kBoundTrap[] = {0xFF, 0x25, kAny, kAny, kAny, kAny, 0xCC, 0xCC};

// What they all begin with.
constexpr std::uint8_t kJumpByte = 0xFF;
constexpr std::uint8_t kEndbrByte = 0xF3;

// The first that fits counts.
constexpr StubShape kStubShapes[] = {
    {.code = kLazy, .pushes = {11}},
    {.code = kHead, .pushed_before = 1, .pushes = {6}},
    {.code = kTrackedLazy, .pushes = {9}},
    {.code = kTrackedLazyBnd, .pushes = {9}},
    {.code = kTracked},
    {.code = kTrackedBnd},
    {.code = kMold},
    {.code = kMoldHead, .pushes = {6, 12}},
    {.code = kBound},
    {.code = kBoundTrap},
};

bool HasShape(std::span<const std::uint8_t> text, std::span<const std::int16_t> shape) {
  return text.size() >= shape.size() && std::equal(shape.begin(), shape.end(), text.begin(),
                                                   [](std::int16_t wanted, std::uint8_t is) {
                                                     return wanted == kAny || wanted == is;
                                                   });
}

}  // namespace

std::vector<StubRow> FindX86StubRows(std::span<const std::uint8_t> text) {
  std::vector<StubRow> rows;
  for (std::size_t at = 0; at < text.size();) {
    const std::span<const std::uint8_t> rest = text.subspan(at);
    const bool may_begin = rest[0] == kJumpByte || rest[0] == kEndbrByte;
    const auto* const shape = std::find_if(
        std::begin(kStubShapes), std::end(kStubShapes),
        [&](const StubShape& candidate) { return may_begin && HasShape(rest, candidate.code); });
    if (shape == std::end(kStubShapes)) {
      ++at;
      continue;
    }
    std::uint32_t words = shape->pushed_before;
    rows.push_back({at, words});
    for (const std::size_t push : shape->pushes) {
      if (push != 0) rows.push_back({at + push, ++words});
    }
    at += shape->code.size();
    rows.push_back({at, StubRow::kNoStub});
  }
  return rows;
}

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
