// RandomStack: words that tempt an unwinder, and chains of frames, for the stacks that conformance
// suites unwind.
#pragma once

#include <cstddef>
#include <span>

#include "strobe/base/address.h"
#include "strobe/provider/sample_provider.h"

namespace strobe::testing {

// A word that an unwinder may follow: a small number, a number like a code address, or a pointer
// into the stack, to its edges, or not aligned.
inline Address TemptingWord(RandomSource& random, Address base, std::size_t words) {
  const auto below = [&](double limit) { return static_cast<Address>(random.Uniform() * limit); };
  switch (below(8)) {
    case 0: return below(3);
    case 1: return 0x400000 + below(1 << 20);
    case 2: return base + below(static_cast<double>(words * 8));
    case 3: return base + words * 8 - below(24);
    case 4: return ~below(64);
    case 5: return below(0x1p63) * 2;
    default: return base + below(static_cast<double>(words)) * 8;
  }
}

// Writes a chain of frames over `words`; the address of the first word is `base`. Each frame has
// its caller's frame pointer and a return address; the last has two zeroes. Returns the innermost
// frame pointer.
inline Address WriteFrameChain(RandomSource& random, Address base, std::span<Address> words) {
  Address first = 0;
  Address* link = &first;
  for (std::size_t at = 0; at + 2 <= words.size();
       at += 2 + static_cast<std::size_t>(random.Uniform() * 4)) {
    *link = base + at * sizeof(Address);
    link = &words[at];
    words[at + 1] = 0x400000 + static_cast<Address>(random.Uniform() * (1 << 18)) * 4;
    words[at] = 0;
  }
  link[link == &first ? 0 : 1] = 0;
  return first;
}

}  // namespace strobe::testing
