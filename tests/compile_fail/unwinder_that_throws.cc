// refused: unwinder.Unwind(registers, live, output)
// refused: noexcept | throw
#include "strobe/unwind/unwinder.h"

struct MyUnwinder {
  template <strobe::StackMemory M>
#ifdef REFUSED
  strobe::WalkResult Unwind(const strobe::NativeRegisters&, const M&,
                            std::span<strobe::Address>) const {
#else
  strobe::WalkResult Unwind(const strobe::NativeRegisters&, const M&,
                            std::span<strobe::Address>) const noexcept {
#endif
      return {};
}
}
;
static_assert(strobe::Unwinder<MyUnwinder>);
