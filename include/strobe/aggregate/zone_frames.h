// AddZoneFrames: shows the zones of a profile's samples in their stacks.
#pragma once

#include "strobe/core/profile.h"

namespace strobe {

// Puts the zones of each sample (see ScopedZone) at the root of its stack, outermost first: the
// root's caller-most frame is then the outermost zone. Samples, labels, values and moments stay as
// they are, and stacks that no sample needs go. For a profile whose frames have no names yet:
// Symbols are made for the frames that are there. If memory runs out, the profile is unchanged.
void AddZoneFrames(Profile& profile);

}  // namespace strobe
