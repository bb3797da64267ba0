// Stacks of generated functions: a path of calls, and the two ways in which the functions are
// compiled.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <span>
#include <vector>

#include "strobe/arch/registers.h"

namespace strobe::testing {

struct Path;
using Step = std::uint64_t (*)(Path& path, std::size_t depth);

// steps[0](path, 1) calls steps[1](path, 2), and so on; the last step is a Leaf.
struct Path {
  const Step* steps = nullptr;
  std::uint64_t values[8] =
      {};  // what the functions calculate with; zeros keep them off their unlikely branches
  // Called by the leaf with its registers, as a signal's handler would see them. They stay true
  // until it returns.
  std::function<void(const NativeRegisters& registers)> at_leaf;
};

enum class FunctionKind : std::uint8_t { kPlain, kFramePointers };

// The functions of that kind, in no order.
std::vector<Step>& Functions(FunctionKind kind);
// Takes the leaf's registers and calls path.at_leaf.
Step Leaf(FunctionKind kind);
// Where the functions of that kind lie, the leaf among them, and nothing else.
struct CodeRange {
  Address start = 0;
  Address limit = 0;
};
CodeRange CodeOf(FunctionKind kind);

// Fills `steps` with functions of that kind: the same seed, the same functions.
void ChooseSteps(FunctionKind kind, std::uint64_t seed, std::span<Step> steps);

// Small and fast, and the same numbers for every contender.
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed * 0x9E3779B97F4A7C15 + 1) {}
  std::size_t Below(std::size_t limit) {
    state_ ^= state_ << 13;
    state_ ^= state_ >> 7;
    state_ ^= state_ << 17;
    return static_cast<std::size_t>((state_ >> 33) % limit);
  }

 private:
  std::uint64_t state_;
};

// Reads more than the L2 cache holds.
void EvictCache();

struct AddFunctions {
  AddFunctions(FunctionKind kind, std::initializer_list<Step> functions) {
    Functions(kind).insert(Functions(kind).end(), functions);
  }
};

}  // namespace strobe::testing

// How the generated functions, compiled twice, come by their names and their section.
#ifdef STROBE_BENCH_FRAME_POINTERS
#define STROBE_BENCH_KIND ::strobe::testing::FunctionKind::kFramePointers
#define STROBE_BENCH_NAME(name) FramePointer##name
#define STROBE_BENCH_CODE __attribute__((noinline, section("strobe_bench_fp")))
#else
#define STROBE_BENCH_KIND ::strobe::testing::FunctionKind::kPlain
#define STROBE_BENCH_NAME(name) Plain##name
#define STROBE_BENCH_CODE __attribute__((noinline, section("strobe_bench_plain")))
#endif
