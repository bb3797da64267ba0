#include "strobe/core/zone.h"

#include "strobe/core/thread_info.h"

namespace strobe {

std::string ZonePath(std::string_view outer, std::string_view name) {
  if (IsOverZoneLimit(outer)) return std::string(outer);
  std::string part = SanitizedText(name, ZoneName::kMaxBytes);
  std::ranges::replace(part, kZoneSeparator, ':');
  if (outer.empty()) return part;
  const auto zones = static_cast<std::size_t>(std::ranges::count(outer, kZoneSeparator)) + 1;
  // Room for kZonesOverLimit stays.
  constexpr std::size_t kMostBytes = LabelSet::kMaxTextBytes - 1 - kZonesOverLimit.size();
  if (zones == kMaxZones || outer.size() + 1 + part.size() > kMostBytes) part = kZonesOverLimit;
  return std::string(outer) + kZoneSeparator + part;
}

}  // namespace strobe
