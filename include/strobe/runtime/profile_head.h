// ProfileHead: what a Profile says of itself, beside its samples.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

#include "strobe/aggregate/recording.h"
#include "strobe/base/visibility.h"
#include "strobe/core/profile.h"
#include "strobe/core/stats.h"
#include "strobe/runtime/recording_columns.h"
#include "strobe/runtime/session.h"

STROBE_HIDDEN_BEGIN
namespace strobe::internal {

// later - earlier, for the counters; what is a state and no counter stays as it is in `later`.
Stats StatsBetween(const Stats& earlier, const Stats& later);

// The head of a profile that has these columns, one at least; `stats` are those of its time.
template <class Traits>
Profile MakeProfileHead(const Session<Traits>& session, const RecordingColumns& columns,
                        Stats stats) {
  using Platform = typename Traits::Platform;
  Profile profile;
  profile.value_types = ValueTypesOf(columns, Traits::Providers::AllValueTypes());
  profile.default_value_type = DefaultColumn(columns);
  profile.period_type = profile.value_types[profile.default_value_type];
  profile.period = session.period_ns(columns[0].provider);
  profile.program = Platform::ProgramName();
  profile.process_id = Platform::ProcessId();
  stats.asked_rate_hz =
      session.period_ns() > 0 ? 1e9 / static_cast<double>(session.period_ns()) : 0;
  profile.stats = std::move(stats);
  return profile;
}

// Adds what is known when the period has been taken; takes no memory.
inline void SetPeriod(Profile& profile, const RecordedPeriod& period, std::uint64_t sequence) {
  profile.time_ns = period.time_ns;
  profile.duration_ns = period.duration_ns;
  profile.stats.stacks_folded = period.stacks_folded;
  profile.sequence = sequence;
}

}  // namespace strobe::internal
STROBE_HIDDEN_END
