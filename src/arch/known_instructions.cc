#include "known_instructions.h"

#include <algorithm>
#include <cstring>
#include <iterator>

namespace strobe::internal {
namespace {

constexpr std::uint8_t kSignalReturn[kAarch64SignalReturnBytes] = {0x68, 0x11, 0x80, 0xD2,
                                                                   0x01, 0x00, 0x00, 0xD4};
constexpr std::size_t kAarch64InstructionBytes = 4;

// push rcx; push rax; cmp rax, 4096; lea rcx, [rsp + 24]: the beginning of ___chkstk_ms.
constexpr std::uint8_t kStackProbe[] = {0x51, 0x50, 0x48, 0x3D, 0x00, 0x10, 0x00,
                                        0x00, 0x48, 0x8D, 0x4C, 0x24, 0x18};
// pop rax; pop rcx; ret: its end.
constexpr std::uint8_t kStackProbeEnd[] = {0x58, 0x59, 0xC3};
constexpr std::ptrdiff_t kMaxStackProbeBytes = 64;

// Boost.Context: finish: xor rdi, rdi; call _exit; hlt. Go: goexit: nop; call goexit1; nop; and
// int3 up to the next function.
constexpr std::uint8_t kCall = 0xE8;
constexpr std::size_t kCallBytes = 5;
constexpr std::uint8_t kXorRdi[] = {0x48, 0x31, 0xFF};
constexpr std::uint8_t kHlt[] = {0xF4};
constexpr std::uint8_t kNop[] = {0x90};
constexpr std::uint8_t kNopAndPadding[] = {0x90, 0xCC};

// musl's __clone, in the new thread: xor ebp, ebp; pop rdi; call r9 | mov edi, eax; xor eax, eax;
// mov al, 60 (exit); syscall.
constexpr std::uint8_t kClone[] = {0x31, 0xED, 0x5F, 0x41, 0xFF, 0xD1, 0x89,
                                   0xC7, 0x31, 0xC0, 0xB0, 0x3C, 0x0F, 0x05};
constexpr std::size_t kCloneEnd = 6;
// musl's _start: xor rbp, rbp; mov rdi, rsp; lea rsi, [rip + 4 bytes]; and rsp, -16; call.
constexpr std::uint8_t kStart[] = {0x48, 0x31, 0xED, 0x48, 0x89, 0xE7, 0x48, 0x8D, 0x35};
constexpr std::size_t kStartDistanceBytes = 4;
constexpr std::uint8_t kAlignStack[] = {0x48, 0x83, 0xE4, 0xF0};

// glibc's dynamic loader begins the program: mov rdi, rsp; call _dl_start | mov r12, rax. Then it
// calls the libraries' constructors: xor ebp, ebp; call _dl_init | lea rdx, [rip + 4 bytes].
constexpr std::uint8_t kPassStack[] = {0x48, 0x89, 0xE7};
constexpr std::uint8_t kKeepEntry[] = {0x49, 0x89, 0xC4};
constexpr std::uint8_t kClearFp[] = {0x31, 0xED};
constexpr std::uint8_t kPassFini[] = {0x48, 0x8D, 0x15};

// What programs begin with, behind endbr64 if their system has that.
constexpr std::uint8_t kEndbr[] = {0xF3, 0x0F, 0x1E, 0xFA};
constexpr std::uint8_t kStartOfGlibc[] = {0x31, 0xED, 0x49, 0x89, 0xD1};
constexpr std::uint8_t kStartOfMusl[] = {0x48, 0x31, 0xED, 0x48, 0x89, 0xE7};

template <std::size_t N>
bool StartsWith(std::span<const std::uint8_t> text, const std::uint8_t (&bytes)[N]) {
  return text.size() >= N && std::equal(std::begin(bytes), std::end(bytes), text.begin());
}
template <std::size_t N>
bool EndsWith(std::span<const std::uint8_t> text, const std::uint8_t (&bytes)[N]) {
  return text.size() >= N && StartsWith(text.last(N), bytes);
}

// Whether musl's _start ends in `before`, up to its call.
bool IsStart(std::span<const std::uint8_t> before) {
  if (!EndsWith(before, kAlignStack)) return false;
  before = before.first(before.size() - std::size(kAlignStack));
  return before.size() >= kStartDistanceBytes &&
         EndsWith(before.first(before.size() - kStartDistanceBytes), kStart);
}

// Whether the loader's _start calls between the two.
bool IsLoader(std::span<const std::uint8_t> before, std::span<const std::uint8_t> after) {
  return (EndsWith(before, kPassStack) && StartsWith(after, kKeepEntry)) ||
         (EndsWith(before, kClearFp) && StartsWith(after, kPassFini));
}

void FindCloneEnds(std::span<const std::uint8_t> text, std::vector<std::size_t>& found) {
  auto at = text.begin();
  while ((at = std::search(at, text.end(), std::begin(kClone), std::end(kClone))) != text.end()) {
    found.push_back(static_cast<std::size_t>(at - text.begin()) + kCloneEnd);
    at += std::size(kClone);
  }
}

}  // namespace

std::vector<std::size_t> FindAarch64SignalReturns(std::span<const std::uint8_t> text) {
  std::vector<std::size_t> found;
  for (std::size_t at = 0; at + sizeof(kSignalReturn) <= text.size();
       at += kAarch64InstructionBytes) {
    if (StartsWith(text.subspan(at), kSignalReturn)) found.push_back(at);
  }
  return found;
}

std::vector<StackProbe> FindStackProbes(std::span<const std::uint8_t> text) {
  std::vector<StackProbe> found;
  auto at = text.begin();
  while ((at = std::search(at, text.end(), std::begin(kStackProbe), std::end(kStackProbe))) !=
         text.end()) {
    const auto limit =
        text.end() - at > kMaxStackProbeBytes ? at + kMaxStackProbeBytes : text.end();
    const auto end = std::search(at, limit, std::begin(kStackProbeEnd), std::end(kStackProbeEnd));
    if (end != limit)
      found.push_back({.begin = static_cast<std::size_t>(at - text.begin()),
                       .pop = static_cast<std::size_t>(end - text.begin())});
    at += std::size(kStackProbe);
  }
  return found;
}

std::vector<std::size_t> FindStackEnds(std::span<const std::uint8_t> text) {
  std::vector<std::size_t> found;
  FindCloneEnds(text, found);
  for (std::size_t at = 0; at < text.size(); ++at) {
    // The others have a call of five bytes in the middle, which a fast search finds.
    const auto* const call =
        static_cast<const std::uint8_t*>(std::memchr(text.data() + at, kCall, text.size() - at));
    if (call == nullptr) break;
    at = static_cast<std::size_t>(call - text.data());
    const auto before = text.first(at);
    const auto after = text.subspan(std::min(at + kCallBytes, text.size()));
    const bool is_finish = EndsWith(before, kXorRdi) && StartsWith(after, kHlt);
    const bool is_goexit = EndsWith(before, kNop) && StartsWith(after, kNopAndPadding);
    if (is_finish || is_goexit) found.push_back(is_finish ? at - std::size(kXorRdi) : at);
    const bool is_start = IsStart(before) || IsLoader(before, after);
    if (is_start && at + kCallBytes <= text.size()) found.push_back(at + kCallBytes);
  }
  std::ranges::sort(found);
  return found;
}

bool BeginsProgram(std::span<const std::uint8_t> code) {
  const auto rest = StartsWith(code, kEndbr) ? code.subspan(std::size(kEndbr)) : code;
  const bool is_loader = StartsWith(rest, kPassStack) && rest.size() > std::size(kPassStack) &&
                         rest[std::size(kPassStack)] == kCall;
  return is_loader || StartsWith(rest, kStartOfGlibc) || StartsWith(rest, kStartOfMusl);
}

}  // namespace strobe::internal
