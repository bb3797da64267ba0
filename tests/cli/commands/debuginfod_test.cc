#include "../../../src/cli/commands/debuginfod.h"

#include "gtest/gtest.h"
#include "platform/test_system.h"

namespace strobe::internal {
namespace {

class DebuginfodTest : public ::testing::Test {
 protected:
  ~DebuginfodTest() override {
    for (const char* const name : {"DEBUGINFOD_URLS", "DEBUGINFOD_CACHE_PATH"})
      testing::UnsetVariable(name);
  }
};

TEST_F(DebuginfodTest, WithoutServersNothingIsFetched) {
  testing::UnsetVariable("DEBUGINFOD_URLS");
  EXPECT_EQ(DebuginfodFetcher(), nullptr);
  testing::SetVariable("DEBUGINFOD_URLS", "");
  EXPECT_EQ(DebuginfodFetcher(), nullptr);
}

TEST_F(DebuginfodTest, WhatNoServerHasIsNoPath) {
  const testing::TemporaryDirectory directory;
  testing::SetVariable("DEBUGINFOD_CACHE_PATH", directory.path().string());
  testing::SetVariable("DEBUGINFOD_URLS", "http://127.0.0.1:1");  // where no server listens
  const auto fetch = DebuginfodFetcher();
  if (fetch == nullptr) GTEST_SKIP() << "built without debuginfod's client";
  EXPECT_EQ(fetch("0123456789abcdef0123456789abcdef01234567"), "");
  EXPECT_EQ(fetch("no build id"), "");
}

}  // namespace
}  // namespace strobe::internal
