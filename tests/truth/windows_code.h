// Code to be sampled: every kind of prologue, body and epilogue that compilers write for Windows.
#pragma once

namespace strobe::testing {

// Runs all of it once; returns something that depends on all of it.
unsigned RunWindowsCode(unsigned seed);

}  // namespace strobe::testing
