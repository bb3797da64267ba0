// STROBE_SIGNAL_SAFE marks the data plane: functions that may run inside a signal handler, or while
// the thread that they capture is stopped. Such a function never allocates, locks, throws, logs,
// calls the loader, touches lazily allocated thread-local storage, or reads memory that has not
// been validated. tests/handler_gate.py checks the object code reachable from the handler.
#pragma once

#define STROBE_SIGNAL_SAFE __attribute__((hot))
#define STROBE_ALWAYS_INLINE __attribute__((always_inline)) inline
// After the parameters of a lambda.
#define STROBE_ALWAYS_INLINE_LAMBDA __attribute__((always_inline))
