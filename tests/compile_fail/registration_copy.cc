// refused: deleted
#include <utility>

#include "strobe/strobe.h"

// A registration ends once, on the thread it began on: it moves and is never copied.
void F(strobe::Profiler& profiler) {
  auto registration = profiler.RegisterThread("worker");
#ifdef REFUSED
  auto other = registration;
#else
  auto other = std::move(registration);
#endif
  (void)other;
}
