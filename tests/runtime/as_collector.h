// A fixture whose tests act as the collector's thread of the manual platform.
#pragma once

#include <cstdint>

#include "gtest/gtest.h"
#include "strobe/testing/fakes/manual_platform.h"

namespace strobe::testing {

class AsCollector : public ::testing::Test {
 protected:
  static constexpr std::uint64_t kCollector = 1;

  void SetUp() override {
    ManualPlatform::Reset();
    ManualPlatform::ActAs(kCollector);
  }
  void TearDown() override { ManualPlatform::ActAs(0); }
};

}  // namespace strobe::testing
