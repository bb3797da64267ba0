// What the tests that fork share.
#pragma once

#include <pthread.h>
#include <unistd.h>

#include <cstdio>

#include "kept_profiles.h"
#include "support/in_child.h"

// In a fork's child, where GoogleTest's own checks would report in vain: says what failed, and
// ends the child.
#define STROBE_CHILD_CHECK(condition)                                                     \
  do {                                                                                    \
    if (!(condition)) {                                                                   \
      std::fprintf(stderr, "%s:%d: in the child: %s does not hold\n", __FILE__, __LINE__, \
                   #condition);                                                           \
      _exit(1);                                                                           \
    }                                                                                     \
  } while (false)

namespace strobe::testing {

// From now on a child never finds the kept profiles locked by a thread that it has not got.
inline void HoldKeptProfilesOverForks() {
  static const int is_held =
      pthread_atfork([] { KeptProfiles::Mutex().lock(); }, [] { KeptProfiles::Mutex().unlock(); },
                     [] { KeptProfiles::Mutex().unlock(); });
  static_cast<void>(is_held);
}

}  // namespace strobe::testing
