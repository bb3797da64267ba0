// Files that the program cannot reach. A library that opens files by itself knows only their
// numbers, so it would use and close what the program has put in their places.
#pragma once

namespace strobe::internal {

// Gives the calling thread, and those that it begins from now on, a table of files of their own.
// Its three standard files are /dev/null; it has no other file of the program. What the thread
// opens, no other thread can close or replace, and no fork's child of another thread inherits.
// Call it only on a thread of the profiler, before it opens a file. False, and nothing has changed,
// under a filter of system calls, which may not expect this.
bool TakeOwnFiles();

}  // namespace strobe::internal
