// The files that threads' probes keep open, over all profilers.
#pragma once

#include <cstddef>

namespace strobe::internal {

// Keeps an open file. Returns its place, or -1 if no more may be kept.
int KeepThreadFile(int file);
// The file in that place; -1 if a fork has closed it.
int KeptThreadFile(int place);
// Closes the file in that place.
void DropThreadFile(int place);

// Closes all kept files. For a fork's child; takes no lock and no memory.
void DropAllThreadFiles();

}  // namespace strobe::internal
