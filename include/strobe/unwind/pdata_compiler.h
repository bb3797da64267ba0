// CompilePdata: the frame information of Windows images for x64 (.pdata and .xdata) -> the rows of
// an UnwindTable. Control plane; compiled and tested on every host.
#pragma once

#include <cstdint>
#include <functional>
#include <span>

#include "strobe/unwind/cfi_compiler.h"

namespace strobe {

// Where an image's frame information lies. All positions are relative virtual addresses: bytes from
// the image's base.
struct PdataSource {
  // Copies bytes of the image as it is loaded; returns how many could be read, from the front.
  using Read = std::function<std::size_t(std::uint32_t position, std::span<std::uint8_t> bytes)>;
  Read read;
  std::uint32_t pdata = 0;  // the exception directory: sorted entries of 12 bytes
  std::uint32_t pdata_bytes = 0;
  std::uint32_t text = 0;  // the code that rows are wanted of
  std::uint32_t text_limit = 0;
};

// The rows of the text, their offsets counted from its start. A function's unwind codes say how far
// its prologue has come; how far an epilogue has undone it they do not say, but the code does: an
// epilogue is a run of few kinds of instructions, which an unwinder may recognize from any of them
// on (Microsoft, "x64 exception handling": "Epilog code"). So they are looked for here, once, and
// become rows like all others. Code that no entry covers is a leaf function's, whose return address
// lies at the stack pointer. An image's entries are read with every suspicion; what cannot be
// understood is counted, and has no rule.
CompiledCfi CompilePdata(const PdataSource& source);

}  // namespace strobe
