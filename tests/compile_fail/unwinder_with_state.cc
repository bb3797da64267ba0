// refused: unwinder.Unwind(registers, live, output)
#include "strobe/unwind/unwinder.h"

struct MyUnwinder {
  template <strobe::StackMemory M>
#ifdef REFUSED
  // Not const: an unwinder keeps nothing between two walks.
  strobe::WalkResult Unwind(const strobe::NativeRegisters&, const M&,
                            std::span<strobe::Address>) noexcept {
#else
  strobe::WalkResult Unwind(const strobe::NativeRegisters&, const M&,
                            std::span<strobe::Address>) const noexcept {
#endif
      return {};
}
}
;
static_assert(strobe::Unwinder<MyUnwinder>);
