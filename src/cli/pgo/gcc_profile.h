// GccProfile: a profile for GCC's -fauto-profile.
#pragma once

#include <string>

#include "function_samples.h"

namespace strobe::internal {

// GCC's sample profile of version 2, as GCC 12 to 15 read it (gcc/auto-profile.cc): numbers of 32
// bits, the lowest byte first, and counts of two of these. Behind a head come the names of
// functions, each with its length and a zero at its end, and the functions: entries, the number of
// the name, lines, and what is inlined. A line is its offset in the function, moved by 16 bits, and
// its discriminator, which GCC 12 expects to be 0. Counts are as CountScale has them.
std::string GccProfile(const FunctionSamplesMap& functions, double sample_amount);

}  // namespace strobe::internal
