// The heap profiler's functions under the names that gperftools gives them, for a program that
// moves from it. Link the library strobe-gperftools-heap in place of -ltcmalloc: the program keeps
// its allocator (see allocations/README.md). For C and C++.
//
//   HeapProfilerStart("heap");     // heap.0001.heap, heap.0002.heap, ...
//   RunYourProgram();
//   HeapProfilerDump("done");
//   HeapProfilerStop();
//
// Or without a change of the program: HEAPPROFILE=heap ./program. Each file is Strobe's pprof, with
// alloc_objects, alloc_space (since the start), peak_objects, peak_space (when most was live),
// inuse_objects and inuse_space (at the dump).
// src/docs/from-other-profilers.md lists the variables, and what differs from gperftools.
//
// Allocations are sampled: one in TCMALLOC_SAMPLE_PARAMETER bytes in the mean, 65536 without that
// variable. All functions are thread-safe, and none may be called in a signal's handler. A failure
// is one line on standard error.
#pragma once

#ifdef __cplusplus
extern "C" {
#endif

// Begins a profile of all allocations. Does nothing if one is under way. Files are numbered on from
// those of the process's earlier profiles.
void HeapProfilerStart(const char* prefix);

// 1 if a profile is under way, else 0.
int IsHeapProfilerRunning(void);

// Ends the profile, without a file.
void HeapProfilerStop(void);

// Writes the next file, and a line on standard error with its name and the reason. Does nothing if
// no profile is under way.
void HeapProfilerDump(const char* reason);

// The profile as text, in the older format that both pprofs read: to be freed by free(). An empty
// text if no profile is under way; NULL if memory runs out.
char* GetHeapProfile(void);

#ifdef __cplusplus
}
#endif
