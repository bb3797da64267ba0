// LlvmProfileText: a profile for Clang's -fprofile-sample-use.
#pragma once

#include <string>

#include "function_samples.h"

namespace strobe::internal {

// LLVM's sample profile as text, which llvm-profdata merge --sample reads, too. The comment of
// llvm/ProfileData/SampleProfReader.h describes the format. Each line is a location in a function
// and its count, with the functions that were called there; or what was inlined there, whose lines
// are indented further:
//
//   main:184019:0
//    4: 534
//    5.1: 1075 _Z3fooi:8 _Z3barv:12
//    6: inlined:205
//     1: 205
//
// The functions of the largest totals come first. Counts are as CountScale has them. A name that
// the format cannot have is left out: an empty one, and one with a space or a control character.
std::string LlvmProfileText(const FunctionSamplesMap& functions, double sample_amount);

}  // namespace strobe::internal
