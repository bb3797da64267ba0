// FunctionSamples: how often the lines of functions were executed, as compilers want it.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <string>

#include "code_samples.h"

namespace strobe::internal {

// A place in a function, which stays the same if lines are added before the function.
struct LineLocation {
  std::uint32_t offset = 0;  // lines from the function's own, modulo 2^16, as LLVM counts them
  std::uint32_t discriminator = 0;  // tells blocks of one line apart

  // NOLINTNEXTLINE(modernize-use-nullptr): clang-tidy 14 sees a 0 in the compiler's own code
  friend auto operator<=>(const LineLocation&, const LineLocation&) = default;
};

// Counts are in proportion to executions. Their unit is that of the samples' amounts.
struct FunctionSamples {
  struct Line {
    double count = 0;
    std::map<std::string, double> calls{};  // by the linkage name of what was called
  };

  double entries = 0;  // calls of the function; 0 of an inlined one
  std::map<LineLocation, Line> lines;
  // What the compiler has inlined, by where it was called, and by its linkage name.
  std::map<LineLocation, std::map<std::string, FunctionSamples>> inlined;

  // The sum of all counts, with those of inlined functions.
  [[nodiscard]] double total() const;
  void Add(const FunctionSamples& other);
};

// By linkage names.
using FunctionSamplesMap = std::map<std::string, FunctionSamples>;

// How Clang packs the discriminator of a block, the number of copies that a transformation has made
// of it, and the number of the copy into one number: LLVM's DebugInfoMetadata.h,
// encodeDiscriminator().
struct ClangDiscriminator {
  std::uint32_t base = 0;    // the discriminator of the block in the source code
  std::uint32_t copies = 1;  // how much fewer executions an instruction of the copy has
  static ClangDiscriminator Decode(std::uint32_t packed);
};

// What a discriminator in debug information is.
enum class DiscriminatorKind : std::uint8_t {
  kClang,  // as ClangDiscriminator has it
  kPlain,  // a number, as GCC writes it
};

// True if the frame has its function's name, its line, and the line where the function begins.
bool IsLocated(const SourceFrame& frame);
LineLocation LocationIn(const SourceFrame& frame, DiscriminatorKind kind);

// True if each function at the place is located.
bool IsLocated(const CodeSamples::Place& place);

// The samples of an address say how often it was executed, as well as the address's own costs do.
// * A line has several addresses that are executed as often. It gets the mean of their amounts, by
//   the bytes of its code: not the sum, which would grow with the number of instructions, and not
//   the largest, of which few samples say less. Where the bytes are unknown, it gets the largest.
// * A call is executed as often as its line: the functions that were called there share its count
//   in proportion to their amounts. If the line has fewer samples than the function's entry, the
//   callers' lines share the entry's count, in the same way.
// * A function is entered as often as its first line is executed, or its callers' lines; if neither
//   has samples, as often as its first line that has some. So each call that a stack shows has a
//   count: Clang takes a call without one for cold, and does not inline it.
FunctionSamplesMap MakeFunctionSamples(const CodeSamples& code, DiscriminatorKind kind);

}  // namespace strobe::internal
