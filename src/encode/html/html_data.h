// PageData: what a page shows, as bytes that its script reads (page/data.js).
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "strobe/encode/profile_view.h"

namespace strobe::internal {

// The data of a page that shows `profile`, or compares it with `base` if that is not null.
//
// In this order, all columns of numbers unless "texts" is said; a text is named by its index:
//   texts
//   head: version, number of profiles, default value type, moments that one kept moment stands for
//   value types: type; unit
//   modules: path; build id
//   functions: name; short name; file; line; module; 1 if a pseudo-frame
//   sites: function; line; 1 if inlined
//   nodes without the root, each before its children: levels to go up from the node before to the
//     parent, less 1 (0 for its child); site
//   label sets: number of labels of each; key of each label; value of each label
//   for each profile:
//     about: program, process id, sequence, begin in ms since 1970, duration in ns, period, its
//       type and unit, comments
//     threads: id, name, captures
//     number of lives of threads; and of those with the most CPU time: id; name; begin and end in
//       ns since the period's begin, plus 1, 0 if outside the period or unknown; CPU time in ns,
//       plus 1, 0 if unknown; captures
//     rows, sorted by (node, label set): node, less the node of the row before; label set; for each
//       value type its values
//     for each value type, of each function, if stacks were left out, else of none: values in the
//       function itself; with what it calls
//   moments of the first profile: row; ns since the moment before, of the first since the
//     profile's begin; for each value type its values
// Values are two columns: without their signs; and which of them are less than 0.
absl::StatusOr<std::string> PageData(const ProfileView& profile, const ProfileView* base);

}  // namespace strobe::internal
