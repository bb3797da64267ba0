#include "strobe/runtime/session/dump_triggers.h"

#include <algorithm>
#include <type_traits>
#include <utility>

#include "absl/strings/str_format.h"

namespace strobe::internal {
namespace {

constexpr double kMiB = 1 << 20;

}  // namespace

std::optional<std::string> CpuTrigger::Check(const TriggerInput& input) {
  if (least_percent_ <= 0) return std::nullopt;
  if (!last_) last_ = input;
  const std::int64_t elapsed_ns = input.now_ns - last_->now_ns;
  if (elapsed_ns < kMeasuredNs) return std::nullopt;
  const double percent = 100.0 * static_cast<double>(input.process_cpu_ns - last_->process_cpu_ns) /
                         static_cast<double>(elapsed_ns);
  const std::int64_t began_ns = last_->now_ns;
  last_ = input;
  if (percent < least_percent_) {
    since_ns_ = -1;
    has_fired_ = false;
    return std::nullopt;
  }
  if (since_ns_ < 0) since_ns_ = began_ns;
  const double held_s = static_cast<double>(input.now_ns - since_ns_) / 1e9;
  if (held_s < hold_s_ || has_fired_) return std::nullopt;
  // This may throw: then the moment comes again.
  std::string reason =
      absl::StrFormat("trigger: at least %g %% of a CPU for %.1f s", least_percent_, held_s);
  has_fired_ = true;
  return reason;
}

std::optional<std::string> MemoryTrigger::Check(const TriggerInput& input) {
  const std::int64_t now = input.memory_bytes;
  if (limit_bytes_ <= 0 || now < 0) return std::nullopt;
  if (!is_over_) is_over_ = now >= limit_bytes_;
  if (static_cast<double>(now) < kFallen * static_cast<double>(limit_bytes_)) is_over_ = false;
  if (now < limit_bytes_ || *is_over_) return std::nullopt;
  // This may throw: then the moment comes again.
  std::string reason =
      absl::StrFormat("trigger: %.1f MiB of resident memory", static_cast<double>(now) / kMiB);
  is_over_ = true;
  return reason;
}

std::optional<std::string> GrowthTrigger::Check(const TriggerInput& input) {
  const std::int64_t now = input.memory_bytes;
  if (growth_bytes_ <= 0 || now < 0) return std::nullopt;
  from_bytes_ = std::min(from_bytes_.value_or(now), now);
  const std::int64_t growth = now - *from_bytes_;
  if (growth < growth_bytes_) return std::nullopt;
  std::string reason =
      absl::StrFormat("trigger: resident memory grew by %.1f MiB to %.1f MiB",
                      static_cast<double>(growth) / kMiB, static_cast<double>(now) / kMiB);
  from_bytes_ = now;
  return reason;
}

std::optional<std::string> SlowSpanTrigger::Check(const TriggerInput& input) {
  if (!is_on_) return std::nullopt;
  if (!last_) last_ = input.slow_spans;
  if (input.slow_spans == *last_) return std::nullopt;
  std::string reason = absl::StrFormat("trigger: slow spans: %d", input.slow_spans - *last_);
  last_ = input.slow_spans;
  return reason;
}

std::optional<std::string> LimitTrigger::Check(const TriggerInput& input) {
  if (!last_) last_ = input.limits;
  if (input.limits == *last_) return std::nullopt;
  const std::string text = ReachedLimits::LastText();
  std::string reason = "trigger: " + (text.empty() ? "a limit of the program's" : text);
  last_ = input.limits;
  return reason;
}

const std::optional<std::string>& DumpTriggers::Check(const TriggerInput& input) {
  const auto is_soon = [&input](const std::optional<std::int64_t>& last_ns) {
    return last_ns && input.now_ns - *last_ns < kMinDumpPeriodNs;
  };
  std::optional<std::string> reason = reason_;
  const auto check = [&](auto& trigger) {
    constexpr bool kIsMemory = std::is_same_v<decltype(trigger), MemoryTrigger&>;
    std::optional<std::string> fired = trigger.Check(input);
    if (!fired) return;
    if (is_soon(kIsMemory ? last_memory_ns_ : last_dump_ns_) || (reason_ && !kIsMemory)) {
      ++skipped_;
      return;
    }
    reason = reason ? *reason + "; " + *fired : std::move(fired);
    if (kIsMemory) last_memory_ns_ = input.now_ns;
  };
  std::apply([&](auto&... triggers) { (check(triggers), ...); }, triggers_);
  reason_ = std::move(reason);
  return reason_;
}

}  // namespace strobe::internal
