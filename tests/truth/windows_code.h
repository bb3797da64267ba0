// Code to be sampled: every kind of prologue, body and epilogue that compilers write for Windows.
#pragma once

namespace strobe::testing {

// Runs all of it once; returns something that depends on all of it.
unsigned RunWindowsCode(unsigned seed);

// The same of the system's own libraries: files, memory, locks, texts, the registry, the loader,
// and functions of theirs that call back.
unsigned RunSystemCode(unsigned seed);

}  // namespace strobe::testing
