// What a program includes that composes parts of its own, with nothing else included.
#include "strobe/own_parts.h"

#include "gtest/gtest.h"

namespace {

// Nothing is sampled: the suites of the parts do that.
struct OwnTraits : strobe::DefaultTraits {
  using Unwinder = strobe::ChainUnwinder<strobe::FramePointerStep>;
};

TEST(OwnParts, OneHeaderComposesAProfiler) {
  strobe::BasicProfiler<OwnTraits> profiler({.enabled = false});
  const strobe::BasicScopedProfiler session(profiler);
  EXPECT_EQ(session.status().code(), absl::StatusCode::kFailedPrecondition);
}

}  // namespace
