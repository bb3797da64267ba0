// The CPU profiler's functions under the names that gperftools gives them, for a program that
// moves from it. Link the library strobe-gperftools in place of -lprofiler. For C and C++.
//
//   ProfilerStart("profile.pb.gz");
//   RunYourProgram();
//   ProfilerStop();
//
// Or without a change of the program: CPUPROFILE=profile.pb.gz ./program. The file is Strobe's
// pprof: gzipped profile.proto. src/docs/from-other-profilers.md lists the variables, and what
// differs from gperftools.
//
// Every thread of the program is sampled that it begins by pthread_create, thrd_create or
// std::thread. All functions are thread-safe, and none may be called in a signal's handler. A
// failure is a result of 0, where the function has one, and one line on standard error.
#pragma once

#include <time.h>

#ifdef __cplusplus
extern "C" {
#endif

// Set all bytes to 0 first.
struct ProfilerOptions {
  // If not NULL, the sampled thread calls filter_in_thread(filter_in_thread_arg) in a signal's
  // handler for each sample, and a result of 0 leaves the sample out. The stack of a thread that
  // waits (CPUPROFILE_REALTIME) is read from outside: the filter is not asked about it.
  int (*filter_in_thread)(void* arg);
  void* filter_in_thread_arg;
};

// Begins a profile of all threads. Its file, which may exist and is emptied, is written by
// ProfilerFlush, by ProfilerStop, and at the exit of the program. Returns 0 if a profile is under
// way, if the file cannot be written, or if the system does not allow profiling; else 1.
int ProfilerStart(const char* fname);

// The same. `options` may be NULL.
int ProfilerStartWithOptions(const char* fname, const struct ProfilerOptions* options);

// Ends the profile and writes its file. Does nothing if none is under way.
void ProfilerStop(void);

// Writes what has been sampled since the start to the file. Does nothing if no profile is under
// way. The profile goes on.
void ProfilerFlush(void);

// Do nothing, as in gperftools.
void ProfilerEnable(void);
void ProfilerDisable(void);

// 1 if a profile is under way, else 0.
int ProfilingIsEnabledForAllThreads(void);

// For a thread that was begun in another way, such as a plain clone(). Does nothing on others.
void ProfilerRegisterThread(void);

struct ProfilerState {
  int enabled;              // 1 if a profile is under way
  time_t start_time;        // when it began, since 1970; 0 without one
  char profile_name[1024];  // the file; an empty text without one; longer names are cut
  int samples_gathered;     // since the start, without those that a filter has left out
};
// After the NUL of profile_name comes, where it fits, the address of a volatile int that counts the
// samples of the process: gperftools' own test reads it.
void ProfilerGetCurrentState(struct ProfilerState* state);

#ifdef __cplusplus
}
#endif
