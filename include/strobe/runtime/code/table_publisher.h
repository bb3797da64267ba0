// TablePublisher: publishes unwind tables to captures, and frees tables that no capture can read
// any more.
#pragma once

#include <atomic>
#include <cstddef>
#include <functional>
#include <memory>
#include <vector>

#include "strobe/base/visibility.h"
#include "strobe/unwind/unwind_table.h"

namespace strobe {
namespace STROBE_HIDDEN internal {

// Not thread-safe, except that captures run at the same time. Its only links to captures are the
// pointer that they read and IsCapturing.
class TablePublisher {
 public:
  using Tables = std::shared_ptr<const UnwindModules>;
  using Place = std::atomic<const UnwindModules*>;
  // Whether any capture is under way. A capture that begins during the call, and that the call does
  // not see, reads the place after that.
  using IsCapturing = std::function<bool()>;
  // What captures read in place of these tables; by default the tables themselves. Kept for as long
  // as a capture may read it. Throws nothing.
  using Expose = std::function<Tables(const Tables& tables)>;

  // The most replaced tables that are kept because a capture may still read them. A suspended
  // capture keeps all tables that were published since it began.
  static constexpr std::size_t kMaxOld = 16;

  TablePublisher() = default;
  // Withdraws all tables. No capture can begin any more. A thread that is suspended in a capture
  // may still continue it: the tables that it may read are never freed.
  ~TablePublisher();
  TablePublisher(const TablePublisher&) = delete;
  TablePublisher& operator=(const TablePublisher&) = delete;

  // Call it before all other functions. Captures read `place`, which must outlive this object. A
  // second call, with the same place, changes only `is_capturing`.
  void Begin(Place& place, IsCapturing is_capturing, Expose expose = {});

  // Publishes `tables`, and frees old ones. If kMaxOld tables cannot be freed, captures continue
  // with the tables that they have. Returns whether the published tables have changed.
  bool Publish(const Tables& tables);
  // Like Publish, if the published tables may describe code that is not loaded any more. If
  // `tables` cannot be published, captures get tables of no code until a later call succeeds.
  bool Replace(const Tables& tables);

  [[nodiscard]] const UnwindModules* shown() const { return shown_.get(); }

 private:
  // Replace may add one beyond kMaxOld.
  using Old = std::vector<Tables>;

  void Show(Tables tables);
  void FreeOld();

  Place* place_ = nullptr;
  IsCapturing is_capturing_;
  Expose expose_;
  Tables shown_;
  Tables exposed_;  // of `shown_`
  Tables none_;     // tables of no code; made when first needed
  std::unique_ptr<Old> old_;
};

}  // namespace internal
}  // namespace strobe
