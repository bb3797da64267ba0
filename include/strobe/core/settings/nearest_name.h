// NearestName: what was probably meant by a name that does not exist.
#pragma once

#include <span>
#include <string_view>

namespace strobe::internal {

// The one of `names` that `name` is most probably an abbreviation or a misspelling of; the first of
// several. Empty if no name is near: more than a third of the letters would have to change.
std::string_view NearestName(std::string_view name, std::span<const std::string_view> names);

}  // namespace strobe::internal
