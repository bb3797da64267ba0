// Instructions that are known because call frame information describes them badly or not at all.
// All positions are offsets into the bytes that were searched, in ascending order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace strobe::internal {

// `mov x8, #139; svc #0` on aarch64: Linux's return from a signal.
inline constexpr std::size_t kAarch64SignalReturnBytes = 8;
std::vector<std::size_t> FindAarch64SignalReturns(std::span<const std::uint8_t> text);

// ___chkstk_ms of mingw-w64 on x86-64: `push rcx; push rax; ...; pop rax; pop rcx; ret`. The four
// instructions that push and pop have one byte each.
struct StackProbe {
  std::size_t begin = 0;  // of `push rcx`
  std::size_t pop = 0;    // of `pop rax`
};
std::vector<StackProbe> FindStackProbes(std::span<const std::uint8_t> text);

// The addresses on x86-64 that the first function of a stack returns to: of a coroutine of
// Boost.Context's make_fcontext and its copies, of Go's goroutines, of musl's threads (__clone)
// and programs (_start), and of glibc's dynamic loader (_start).
std::vector<std::size_t> FindStackEnds(std::span<const std::uint8_t> text);

// Whether the kernel begins programs at `code`: the dynamic loader's `mov rdi, rsp; call`, glibc's
// `xor ebp, ebp; mov r9, rdx` or musl's `xor rbp, rbp; mov rdi, rsp`. That code has no caller.
bool BeginsProgram(std::span<const std::uint8_t> code);

}  // namespace strobe::internal
