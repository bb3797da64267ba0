// ForkList: lets profilers go on in a fork's child (threads.follow_forks).
#pragma once

#include <chrono>

#include "strobe/base/visibility.h"

namespace strobe {
namespace STROBE_HIDDEN internal {

// An object that goes on in a fork's child.
class GoesOnInChild {
 public:
  // Called by the forking thread, at once.
  virtual void RegisterInChild() = 0;
  // Called by another thread, when the child has lived for ForkList::kLife.
  virtual void StartInChild() = 0;

 protected:
  ~GoesOnInChild() = default;
};

// Thread-safe. A fork's child of a list has the same list.
class ForkList {
 public:
  // A child that lives longer begins sessions. Most others call exec.
  static constexpr std::chrono::milliseconds kLife{10};

  // False if the system does not tell of forks, or there are too many objects.
  static bool Add(GoesOnInChild* object);
  // Behind it, no call is under way.
  static void Remove(GoesOnInChild* object);
};

}  // namespace internal
}  // namespace strobe
