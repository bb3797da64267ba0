// DumpTrigger: the contract of what notices that a moment matters, so that the time before it is
// written. CpuTrigger, MemoryTrigger, GrowthTrigger, SlowSpanTrigger,
// LimitTrigger: its models.
#pragma once

#include <concepts>
#include <cstdint>
#include <optional>
#include <string>
#include <tuple>

#include "strobe/aggregate/reached_limits.h"
#include "strobe/base/visibility.h"
#include "strobe/core/options.h"

namespace strobe {
namespace STROBE_HIDDEN internal {

// What a trigger may look at. The collector has it after each drain.
struct TriggerInput {
  std::int64_t now_ns = 0;          // of the monotonic clock
  std::int64_t process_cpu_ns = 0;  // CPU time of the process, from any begin
  std::int64_t memory_bytes = -1;   // resident memory of the process; -1 if it is not known
  std::uint64_t slow_spans = 0;     // that have ended: SlowSpans::added
  std::uint64_t limits = 0;         // ReachedLimits::count
};

// * Check(input) is called after each drain, with times that never fall. Returns a reason, a few
//   words, if the moment has come: once for each moment. It allocates only for a reason, waits for
//   nothing, and is called by the collector's thread alone.
// * The first call is never a moment: what was before the session is not looked at.
template <class T>
concept DumpTrigger = requires(T trigger, const TriggerInput& input) {
  { trigger.Check(input) } -> std::same_as<std::optional<std::string>>;
};

// The process uses at least so many percent of one CPU for so long. Fires once, and again after the
// use has been less.
class CpuTrigger {
 public:
  // How long a stretch is that the use is measured over: as the longest time between two drains.
  static constexpr std::int64_t kMeasuredNs = 1'000'000'000;

  explicit CpuTrigger(const KeepOptions& options)
      : least_percent_(*options.cpu_percent), hold_s_(*options.cpu_s) {}
  std::optional<std::string> Check(const TriggerInput& input);

 private:
  const double least_percent_;  // 0: never
  const double hold_s_;
  std::optional<TriggerInput> last_;
  std::int64_t since_ns_ = -1;  // when the use has become so high; -1 if it is not
  bool has_fired_ = false;
};
static_assert(DumpTrigger<CpuTrigger>);

// The process's resident memory has reached a limit: fires once, and again after it has been below
// kFallen of it.
class MemoryTrigger {
 public:
  static constexpr double kFallen = 0.9;

  explicit MemoryTrigger(const KeepOptions& options) : limit_bytes_(*options.memory_bytes) {}
  std::optional<std::string> Check(const TriggerInput& input);

 private:
  const std::int64_t limit_bytes_;  // 0: never
  std::optional<bool> is_over_;     // and has fired, or was so at the first Check
};
static_assert(DumpTrigger<MemoryTrigger>);

// The process's resident memory has grown: from the least since the first Check, then since the
// last such moment.
class GrowthTrigger {
 public:
  explicit GrowthTrigger(const KeepOptions& options)
      : growth_bytes_(*options.memory_growth_bytes) {}
  std::optional<std::string> Check(const TriggerInput& input);

 private:
  const std::int64_t growth_bytes_;  // 0: never
  std::optional<std::int64_t> from_bytes_;
};
static_assert(DumpTrigger<GrowthTrigger>);

// A SlowSpan has ended after its threshold.
class SlowSpanTrigger {
 public:
  explicit SlowSpanTrigger(const KeepOptions& options) : is_on_(*options.slow_spans) {}
  std::optional<std::string> Check(const TriggerInput& input);

 private:
  const bool is_on_;
  std::optional<std::uint64_t> last_;
};
static_assert(DumpTrigger<SlowSpanTrigger>);

// A WatchedLimit of the program has been exceeded: a queue's depth, a latency.
class LimitTrigger {
 public:
  explicit LimitTrigger(const KeepOptions& /*options*/) {}
  std::optional<std::string> Check(const TriggerInput& input);

 private:
  std::optional<std::uint64_t> last_;
};
static_assert(DumpTrigger<LimitTrigger>);

// All triggers, and the limit of their rate.
class DumpTriggers {
 public:
  // The shortest time between two dumps that triggers cause, but for the limit of memory, as the
  // system may kill the program in that time: of that, between two of its own.
  // Moments in between are counted.
  static constexpr std::int64_t kMinDumpPeriodNs = 60'000'000'000;

  explicit DumpTriggers(const KeepOptions& options)
      : needs_memory_(*options.memory_bytes > 0 || *options.memory_growth_bytes > 0),
        triggers_(CpuTrigger(options), MemoryTrigger(options), GrowthTrigger(options),
                  SlowSpanTrigger(options), LimitTrigger(options)) {}

  // Whether Check looks at TriggerInput::memory_bytes, which costs a read of a file.
  [[nodiscard]] bool needs_memory() const { return needs_memory_; }

  // The reason for a dump, if its moment has come. Asks each trigger. Returns the same reason again
  // until EndMoment: a moment whose dump fails now has one later.
  const std::optional<std::string>& Check(const TriggerInput& input);
  // The dump of the moment is under way, or there will be none.
  void EndMoment(std::int64_t now_ns) {
    reason_.reset();
    last_dump_ns_ = now_ns;
  }
  // True from Check to EndMoment.
  [[nodiscard]] bool has_moment() const { return reason_.has_value(); }
  // Moments without a dump of their own, because another one is pending, or was less than
  // kMinDumpPeriodNs before.
  [[nodiscard]] std::uint64_t skipped() const { return skipped_; }

 private:
  const bool needs_memory_;
  std::tuple<CpuTrigger, MemoryTrigger, GrowthTrigger, SlowSpanTrigger, LimitTrigger> triggers_;
  std::optional<std::string> reason_;
  std::optional<std::int64_t> last_memory_ns_;  // when MemoryTrigger has last caused one
  std::optional<std::int64_t> last_dump_ns_;
  std::uint64_t skipped_ = 0;
};

}  // namespace internal
}  // namespace strobe
