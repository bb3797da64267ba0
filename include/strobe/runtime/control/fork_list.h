// ForkList: the profilers that go on in a fork's child (threads.follow_forks).
#pragma once

#include <chrono>

#include "strobe/base/visibility.h"

namespace strobe {
namespace STROBE_HIDDEN internal {

// An object that goes on in a fork's child.
class FollowsForks {
 public:
  // Called in the parent by the thread that forks next. Neither allocates nor waits.
  virtual void NoteBeforeFork() = 0;
  // Called in the child, at once, by its thread. True if StartInChild is to be called.
  virtual bool GoOnInChild() = 0;
  // Called in the child by another thread, once the child has lived for ForkList::kLife.
  virtual void StartInChild() = 0;

 protected:
  ~FollowsForks() = default;
};

// Thread-safe. A fork's child has the same list, but for objects that lie on the stacks of threads
// which the child has not got.
class ForkList {
 public:
  // Most children that live shorter call exec or _exit.
  static constexpr std::chrono::milliseconds kLife{10};

  // False if the list has kMaxArenas objects already.
  static bool Add(FollowsForks* object);
  // Waits for a StartInChild that is under way, of whichever object.
  static void AwaitStarts();
  // Waits for a StartInChild that is under way. No call of the object begins any more.
  static void Remove(FollowsForks* object);
};

}  // namespace internal
}  // namespace strobe
