#include "strobe/runtime/code/code_registry.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "strobe/testing/fakes/manual_platform.h"

namespace strobe {
namespace {

using internal::CodeRegistry;
using ::testing::ElementsAre;

GeneratedCode Code(Address start, std::size_t bytes, std::string_view name = "code") {
  return {.name = name, .start = reinterpret_cast<const void*>(start), .bytes = bytes};
}
std::vector<Module> Joined(const CodeRegistry& registry, std::vector<Module> images = {}) {
  ModuleMap map(std::move(images));
  registry.Join(map);
  return map.modules();
}
std::vector<std::string> NamesOf(const std::vector<Module>& modules) {
  std::vector<std::string> names;
  for (const Module& module : modules) names.push_back(module.path);
  return names;
}

TEST(CodeRegistry, ARangeIsAModuleThatCountsFromItsStart) {
  CodeRegistry registry;
  const std::byte eh_frame[24] = {};
  ASSERT_TRUE(registry
                  .Add({.name = "sum/of bytes",
                        .start = reinterpret_cast<const void*>(0x5000),
                        .bytes = 64,
                        .eh_frame = eh_frame})
                  .ok());
  const std::vector<Module> modules = Joined(registry);
  ASSERT_EQ(modules.size(), 1u);
  EXPECT_EQ(modules[0].start, 0x5000u);
  EXPECT_EQ(modules[0].limit, 0x5040u);
  EXPECT_EQ(modules[0].load_bias, 0x5000u);
  EXPECT_EQ(modules[0].path, "sum/of bytes");
  EXPECT_EQ(modules[0].eh_frame_address, reinterpret_cast<Address>(&eh_frame));
  EXPECT_EQ(modules[0].eh_frame_bytes, 24u);
}

TEST(CodeRegistry, TheSameRangeRegisteredAgainIsAnotherModule) {
  CodeRegistry registry;
  ASSERT_TRUE(registry.Add(Code(0x5000, 64)).ok());
  const std::vector<Module> before = Joined(registry);
  const std::uint64_t version = registry.version();
  registry.Remove(0x5000);
  EXPECT_TRUE(Joined(registry).empty());
  EXPECT_NE(registry.version(), version);
  ASSERT_TRUE(registry.Add(Code(0x5000, 64)).ok());
  EXPECT_NE(Joined(registry), before) << "what was known of the code before says nothing of this";
}

TEST(CodeRegistry, RangesThatCannotBeAreRefused) {
  CodeRegistry registry;
  EXPECT_TRUE(absl::IsInvalidArgument(registry.Add(Code(0, 64))));
  EXPECT_TRUE(absl::IsInvalidArgument(registry.Add(Code(0x5000, 0))));
  EXPECT_TRUE(
      absl::IsInvalidArgument(registry.Add(Code(0x5000, CodeRegistry::kMaxRangeBytes + 1))));
  EXPECT_TRUE(absl::IsInvalidArgument(registry.Add(Code(~Address{0} - 10, 64))));
  EXPECT_TRUE(Joined(registry).empty());
}

TEST(CodeRegistry, RangesThatOverlapAreRefused) {
  CodeRegistry registry;
  ASSERT_TRUE(registry.Add(Code(0x5000, 0x100)).ok());
  for (const Address start : {0x4FFF, 0x5000, 0x50FF})
    EXPECT_TRUE(absl::IsAlreadyExists(registry.Add(Code(start, 2)))) << start;
  EXPECT_TRUE(absl::IsAlreadyExists(registry.Add(Code(0x4000, 0x2000))));
  EXPECT_TRUE(registry.Add(Code(0x4F00, 0x100)).ok());
  EXPECT_TRUE(registry.Add(Code(0x5100, 0x100)).ok());
}

TEST(CodeRegistry, WhatOverlapsAnImageGivesWay) {
  CodeRegistry registry;
  ASSERT_TRUE(registry.Add(Code(0x4000, 0x1001, "reaches in")).ok());
  ASSERT_TRUE(registry.Add(Code(0x5FFF, 0x100, "reaches out")).ok());
  ASSERT_TRUE(registry.Add(Code(0x7000, 0x100, "beside")).ok());
  Module image;
  image.start = 0x5000;
  image.limit = 0x6000;
  image.path = "/image";
  EXPECT_THAT(NamesOf(Joined(registry, {image})), ElementsAre("/image", "beside"));
}

TEST(CodeRegistry, NamesAndRangesAreBounded) {
  CodeRegistry registry;
  for (Address i = 0; i < CodeRegistry::kMaxRanges; ++i)
    ASSERT_TRUE(registry.Add(Code(0x5000 + 16 * i, 16)).ok());
  const absl::Status refused = registry.Add(Code(0x4000, 16));
  EXPECT_TRUE(absl::IsResourceExhausted(refused)) << refused;
  registry.Remove(0x5000);
  EXPECT_TRUE(registry.Add(Code(0x4000, 16, std::string(1000, 'x') + "\xFF")).ok());
  EXPECT_EQ(Joined(registry)[0].path, std::string(GeneratedCode::kMaxNameBytes, 'x'));
}

TEST(CodeRegistry, InAForksChildItLeavesTheLockAlone) {
  CodeRegistry registry(&testing::ManualPlatform::ForkCount);
  ASSERT_TRUE(registry.Add(Code(0x5000, 64)).ok());
  testing::ManualPlatform::Fork();
  registry.Remove(0x5000);
  EXPECT_EQ(Joined(registry).size(), 1u);
}

}  // namespace
}  // namespace strobe
