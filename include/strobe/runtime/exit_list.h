// ExitList: the sessions that run when the program exits.
#pragma once

#include <cstddef>

namespace strobe::internal {

// What is stopped at exit, on whatever thread, while all others may still use it.
class StoppedAtExit {
 public:
  virtual void StopAtExit() = 0;

 protected:
  ~StoppedAtExit() = default;
};

// Thread-safe, and without a lock: in a fork's child its owner might not exist. The places are
// those of arenas, for a running session has one.
class ExitList {
 public:
  // `at_exit` is a Platform's AtExit: asked once.
  static void Add(std::size_t place, StoppedAtExit* running, bool (*at_exit)(void (*function)()));
  // False where it is being stopped at this moment: then it must exist until the program's end.
  static bool Remove(std::size_t place, StoppedAtExit* running);
  // Stops all that is there. A fork's child may come to those of its parent.
  static void StopAll();
};

}  // namespace strobe::internal
