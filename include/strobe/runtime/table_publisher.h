// TablePublisher: shows unwind tables to captures, and frees those that no capture can read any
// more.
#pragma once

#include <atomic>
#include <cstddef>
#include <functional>
#include <memory>
#include <vector>

#include "strobe/base/visibility.h"
#include "strobe/unwind/unwind_table.h"

STROBE_HIDDEN_BEGIN
namespace strobe::internal {

// Not thread-safe, but for the captures. It knows nothing of captures but the one pointer that they
// read, and whether one is under way.
class TablePublisher {
 public:
  using Tables = std::shared_ptr<const UnwindModules>;
  using Place = std::atomic<const UnwindModules*>;
  // Whether any capture is under way. A capture that is not seen by it, but begins meanwhile, reads
  // the place after that.
  using IsCapturing = std::function<bool()>;

  // Tables that have been replaced, and that a capture may still read. A capture that stands still
  // keeps what has been shown since it began.
  static constexpr std::size_t kMaxOld = 16;

  TablePublisher() = default;
  // Takes all away from captures, of which none can begin any more. A thread that stands stopped in
  // the middle of a capture may yet go on with it: what it may read is given up.
  ~TablePublisher();
  TablePublisher(const TablePublisher&) = delete;
  TablePublisher& operator=(const TablePublisher&) = delete;

  // To be called before all others: captures read `place`, which outlives this. Again with the
  // same place, it changes nothing but `is_capturing`.
  void Begin(Place& place, IsCapturing is_capturing);

  // Shows `tables`, and frees old ones. Where kMaxOld cannot be freed, captures go on by what they
  // have. Returns whether captures see others than before.
  bool Publish(const Tables& tables);
  // The same, where what captures have may be of code that is not there any more: where `tables`
  // cannot be shown, captures know nothing of any code until the next call that can.
  bool Replace(const Tables& tables);

  [[nodiscard]] const UnwindModules* shown() const { return shown_.get(); }

 private:
  // One more is left by Replace.
  using Old = std::vector<Tables>;

  void Show(Tables tables);
  void FreeOld();

  Place* place_ = nullptr;
  IsCapturing is_capturing_;
  Tables shown_;
  Tables none_;  // knows of no code; once it was needed
  std::unique_ptr<Old> old_;
};

}  // namespace strobe::internal
STROBE_HIDDEN_END
