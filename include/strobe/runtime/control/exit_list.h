// ExitList: stops the running sessions when the program exits.
#pragma once

#include <cstddef>

namespace strobe::internal {

// An object that is stopped at exit, on any thread, while other threads may still use it.
class StoppedAtExit {
 public:
  virtual void StopAtExit() = 0;

 protected:
  ~StoppedAtExit() = default;
};

// Thread-safe without a lock: in a fork's child the thread that holds the lock might not exist. A
// place is the number of an arena, because each running session has an arena.
class ExitList {
 public:
  // `at_exit` is a Platform's AtExit. Add calls it until it has succeeded once.
  static void Add(std::size_t place, StoppedAtExit* running, bool (*at_exit)(void (*function)()));
  // False if the exit is stopping `running` at this moment: then `running` must exist until the
  // program ends.
  static bool Remove(std::size_t place, StoppedAtExit* running);
  // Stops all sessions in the list. In a fork's child these may be sessions of the parent.
  static void StopAll();
};

}  // namespace strobe::internal
