// CompilePdata: the frame information of Windows images for x64 (.pdata and .xdata) -> the rows of
// an UnwindTable. Control plane; compiled and tested on every host.
#pragma once

#include <cstdint>

#include "strobe/core/memory_reader.h"
#include "strobe/unwind/cfi_compiler.h"

namespace strobe {

// Where an image's frame information lies. All positions, and the addresses that are read, are
// relative virtual addresses: bytes from the image's base.
struct PdataSource {
  AnyMemoryReader read;     // of the image as it is loaded
  std::uint32_t pdata = 0;  // the exception directory: sorted entries of 12 bytes
  std::uint32_t pdata_bytes = 0;
  std::uint32_t text = 0;  // the code to make rows of
  std::uint32_t text_limit = 0;
};

// The rows of the text, their offsets counted from its start. A function's unwind codes say how far
// its prologue has come. They do not say how far an epilogue has undone it, but the code does: an
// epilogue is a run of few kinds of instructions, which an unwinder may recognize from any of them
// on (Microsoft, "x64 exception handling": "Epilog code"). CompilePdata finds the epilogues once,
// and makes rows of them. Code that no entry covers is a leaf function's, whose return address lies
// at the stack pointer. Entries may be hostile; those that cannot be understood are counted, and
// their code has no rule.
CompiledCfi CompilePdata(const PdataSource& source);

}  // namespace strobe
