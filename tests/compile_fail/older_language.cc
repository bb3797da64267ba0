// refused: Strobe needs C++20
// refused by: -std=c++17
// errors: 1
#include "strobe/strobe.h"

// An older language is one sentence, and not hundreds of errors in the headers below.
