// WaitWalk: finds the stack of a thread that waits, without the thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "strobe/base/address.h"
#include "strobe/base/visibility.h"
#include "strobe/core/stack.h"
#include "strobe/core/thread_info.h"
#include "strobe/platform/platform.h"
#include "strobe/runtime/capture/outside_walk.h"
#include "strobe/runtime/polls/wait_frame_pointers.h"
#include "strobe/unwind/unwind_table.h"

namespace strobe {
namespace STROBE_HIDDEN internal {

// A walk from outside lacks the frame pointer. Most stacks do not need it: it has been saved, or
// restored, on the way to the first frame that does. Else the walk uses the one that the thread has
// had at the same place.
//
// The results hold if the thread has not run since the system told of its wait. Used by the
// collector.
template <class Traits>
class WaitWalk {
 public:
  enum class Outcome : std::uint8_t {
    kWhole,         // up to the outermost frame, or to the limit on frames
    kCut,           // the walk lacks the frame pointer, or the stack that an alternate one leads to
    kMissingTable,  // the walk lacks the table of missing_pc()
    kUnreadable,    // the system does not let the stack be read
  };

  // Finds the stack of a thread that waits. `frame_pointers` are those that are known of the
  // thread, or nullptr.
  Outcome Run(const ThreadActivity& wait, const StackBounds& stack, const UnwindModules* tables,
              std::size_t max_frames, const WaitFramePointers* frame_pointers) {
    place_ = {};
    walk_.Begin(wait.pc, wait.sp, stack);
    const Outcome outcome = WalkWith(kUnknownRegister, tables, max_frames);
    cut_ = walk_.frames().size();
    if (outcome == Outcome::kCut && !walk_.has_copy()) return Outcome::kUnreadable;
    if (outcome != Outcome::kCut || cut_ == 0) return outcome;
    place_ = {.pc = wait.pc, .sp = wait.sp, .frame = walk_.frames().back()};
    const WaitFramePointers::Known* const known =
        frame_pointers == nullptr ? nullptr : frame_pointers->Find(place_);
    if (known == nullptr) return Outcome::kCut;
    const Outcome with_fp = WalkWith(known->fp, tables, max_frames);
    if (with_fp != Outcome::kWhole) return with_fp;
    return caller() != 0 && (known->caller == 0 || known->caller == caller()) ? Outcome::kWhole
                                                                              : Outcome::kCut;
  }

  // After kWhole: the stack, leaf first, and its end.
  [[nodiscard]] std::span<const Address> frames() const { return walk_.frames(); }
  [[nodiscard]] StackEnd end() const { return result_.end; }
  // The place where the walk has needed the frame pointer; all zero if it has not.
  [[nodiscard]] const WaitPlace& place() const { return place_; }
  // After kWhole, at such a place: the caller of the frame that needs the frame pointer.
  [[nodiscard]] Address caller() const {
    return walk_.frames().size() > cut_ ? walk_.frames()[cut_] : 0;
  }
  // After kMissingTable.
  [[nodiscard]] Address missing_pc() const {
    return result_.stop.is_exact ? result_.stop.pc : result_.stop.pc - 1;
  }

 private:
  Outcome WalkWith(Address fp, const UnwindModules* tables, std::size_t max_frames) {
    result_ = walk_.Walk(tables, max_frames, fp);
    if (result_.is_pending) return Outcome::kMissingTable;
    const bool is_whole = IsWhole(result_.end) || result_.end == StackEnd::kTruncated;
    return is_whole ? Outcome::kWhole : Outcome::kCut;
  }

  OutsideWalk<Traits> walk_;
  WalkResult result_;
  WaitPlace place_;
  std::size_t cut_ = 0;  // frames that were found without the frame pointer
};

}  // namespace internal
}  // namespace strobe
