// What tables of functions have in common as JSON.
#pragma once

#include <cmath>
#include <string_view>

#include "../../encode/json_writer.h"
#include "absl/strings/str_format.h"
#include "command.h"

namespace strobe::internal {

// null for what is no number.
inline void JsonShare(JsonWriter& json, std::string_view key, double share) {
  json.Key(key);
  json.Raw(std::isfinite(share) ? absl::StrFormat("%.9g", share) : "null");
}

// Begins the object of a table.
inline void JsonHead(JsonWriter& json, const FilteredProfile& subject) {
  json.BeginObject();
  json.Member("type", subject.type().type);
  json.Member("unit", subject.type().unit);
  json.Member("sum", subject.sum);
  json.Member("whole", subject.whole);
  JsonShare(json, "samples", subject.samples.taken());
  JsonShare(json, "effective_samples", subject.samples.count());
  JsonShare(json, "unknown_share", subject.samples.unknown());
}

}  // namespace strobe::internal
