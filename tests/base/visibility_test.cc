#include "strobe/base/visibility.h"

#include "gtest/gtest.h"
#include "strobe/profiler.h"

namespace strobe {

// Any class of a user's may have a profiler and a registration: a warning of one that can be seen
// further than these ends the build here.
struct HolderOfAUser {
  Profiler profiler;
  Registration registration;
  CodeRegistration code;
};

STROBE_HIDDEN int HiddenNumber() { return 7; }

TEST(Visibility, WhatIsHiddenWorksInsideOfItsImage) {
  const HolderOfAUser holder;
  EXPECT_FALSE(holder.registration.status().ok());
  EXPECT_EQ(HiddenNumber(), 7);
}

}  // namespace strobe
