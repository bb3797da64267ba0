// The C interface: one profiler of the default parts for the whole process, for programs in C and
// for extensions of other languages. Link the library strobe-c, by the C++ compiler; or, on Linux,
// link or load libstrobe-c.so, which asks for no C++ compiler.
//
//   strobe_start("exporter.directory=profiles\nsampling.wall_frequency_hz=10");
//   strobe_register_thread("main");
//   strobe_push_text_label("endpoint", "/pay");
//   ...
//   strobe_pop_label();
//   strobe_stop();
//
// Each function returns a strobe_code. A failure changes nothing, throws nothing and never ends the
// program; strobe_last_status has its reason. All functions are thread-safe. None may be called in
// a signal handler, and a thread must not be cancelled (pthread_cancel) in a call.
//
// After a fork, the child's profiler has the same options. It is not running, and no thread is
// registered.
#pragma once

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

// The numbers are those of absl::StatusCode, of which other codes can occur, too.
enum strobe_code {
  STROBE_OK = 0,
  // An argument or an option is wrong.
  STROBE_INVALID_ARGUMENT = 3,
  // An export took longer than exporter.stop_timeout_s.
  STROBE_DEADLINE_EXCEEDED = 4,
  // The thread is registered already.
  STROBE_ALREADY_EXISTS = 6,
  // A limit is reached, or memory has run out.
  STROBE_RESOURCE_EXHAUSTED = 8,
  // Not in this order, or the profiler is switched off.
  STROBE_FAILED_PRECONDITION = 9,
  // The system does not allow it.
  STROBE_UNIMPLEMENTED = 12,
  STROBE_INTERNAL = 13,
};

enum {
  // The most bytes that strobe_last_status writes, with the NUL at the end. Longer texts are cut.
  STROBE_STATUS_BYTES = 512,
  // The most labels that are pushed on a thread at a time.
  STROBE_MAX_LABEL_DEPTH = 64,
};

// Begins a session. `options` is NULL, or has an option a line, "field=value" with the fields and
// values of src/docs/options.md. The text counts as what code sets: it beats the environment's
// STROBE_* variables, and STROBE_ENABLED=0 beats all.
//
// The profiler gets its options once: from the first strobe_start whose options are accepted, or
// from the environment alone if a strobe_start without options, or strobe_register_thread, comes
// before. Later calls with options are FAILED_PRECONDITION.
//
// INVALID_ARGUMENT names the line or the option that is wrong; FAILED_PRECONDITION if a session
// runs already, or STROBE_ENABLED=0 has switched the profiler off.
int strobe_start(const char* options);

// Ends the session: exports what has been sampled, and waits for that. The status is the export's.
// FAILED_PRECONDITION if no session runs.
int strobe_stop(void);

// Exports what has been sampled so far, and waits for that. The session goes on.
// FAILED_PRECONDITION if no session runs.
int strobe_flush(void);

// Registers the calling thread under `name` (at most 63 bytes are kept): it is sampled while a
// session runs, until strobe_unregister_thread or its end. On Windows, a thread must call
// strobe_unregister_thread before it ends. May be called before or after strobe_start.
// ALREADY_EXISTS if the thread is registered.
int strobe_register_thread(const char* name);

// Ends what strobe_register_thread has begun on this thread. FAILED_PRECONDITION if the thread is
// not registered.
int strobe_unregister_thread(void);

// Adds a label to the calling thread's, registered or not: its samples have the label until the
// strobe_pop_label that belongs to this call. A label with the same key is hidden until then. Keys
// are not empty. RESOURCE_EXHAUSTED beyond STROBE_MAX_LABEL_DEPTH. Values with few forms make good
// labels: each set of labels stays for the life of the process.
int strobe_push_text_label(const char* key, const char* text);
int strobe_push_number_label(const char* key, int64_t number);

// The same for a zone, a named region (see scoped_zone.h): zones nest, and a push of a label keeps
// them. Of the name, 64 bytes are kept; it is not empty.
int strobe_push_zone(const char* name);

// Restores the labels and zones that the calling thread had before its last push.
// FAILED_PRECONDITION if there is no push to undo.
int strobe_pop_label(void);

// Returns the code of the calling thread's last call of another function here, and writes its text
// to the `size` bytes at `text`, with a NUL at the end; an empty text after STROBE_OK. `text` may
// be NULL.
int strobe_last_status(char* text, size_t size);

#ifdef __cplusplus
}
#endif
