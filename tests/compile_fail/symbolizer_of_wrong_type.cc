// refused: symbolizer.Symbolize(profile)
#include "strobe/symbolize/symbolizer.h"

struct MySymbolizer {
#ifdef REFUSED
  absl::StatusOr<strobe::Symbols> Symbolize(strobe::Profile&) {
    return strobe::Symbols();
  }  // A profile is immutable.
#else
  absl::StatusOr<strobe::Symbols> Symbolize(const strobe::Profile&) { return strobe::Symbols(); }
#endif
};
static_assert(strobe::Symbolizer<MySymbolizer>);
