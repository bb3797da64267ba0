#include "strobe/core/generated_code.h"

#include <optional>
#include <string>
#include <thread>
#include <type_traits>
#include <utility>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "runtime/manual_traits.h"
#include "strobe/own_parts.h"

namespace strobe {
namespace {

using ::testing::HasSubstr;
using TestProfiler = BasicProfiler<testing::ManualTraits>;

static_assert(!std::is_copy_constructible_v<CodeRegistration> &&
              !std::is_copy_assignable_v<CodeRegistration>);
static_assert(std::is_nothrow_move_constructible_v<CodeRegistration>);

GeneratedCode Code(Address start, std::size_t bytes) {
  return {.name = "code", .start = reinterpret_cast<const void*>(start), .bytes = bytes};
}

class CodeRegistrationTest : public ::testing::Test {
 protected:
  void SetUp() override { testing::ManualPlatform::Reset(); }
  static bool IsFree(TestProfiler& profiler) {
    return profiler.RegisterCode(Code(0x5000, 64)).status().ok();
  }
};

TEST_F(CodeRegistrationTest, LastsAsLongAsTheObjectAndMovesWithIt) {
  TestProfiler profiler;
  std::optional<CodeRegistration> outer;
  {
    CodeRegistration inner = profiler.RegisterCode(Code(0x5000, 64));
    EXPECT_TRUE(inner.status().ok()) << inner.status();
    outer = std::move(inner);
    EXPECT_FALSE(inner.status().ok());  // NOLINT(bugprone-use-after-move): that is the question
  }
  EXPECT_FALSE(IsFree(profiler));
  CodeRegistration other = std::move(*outer);
  outer.reset();
  EXPECT_FALSE(IsFree(profiler));
  other = CodeRegistration();
  EXPECT_TRUE(IsFree(profiler));
}

TEST_F(CodeRegistrationTest, EndsOnAnyThreadAndAfterItsProfiler) {
  CodeRegistration late;
  {
    TestProfiler profiler;
    CodeRegistration registration = profiler.RegisterCode(Code(0x5000, 64));
    std::thread([moved = std::move(registration)] {}).join();
    EXPECT_TRUE(IsFree(profiler));
    late = profiler.RegisterCode(Code(0x5000, 64));
    EXPECT_TRUE(late.status().ok());
  }
  late = CodeRegistration();
}

TEST_F(CodeRegistrationTest, SaysWhyThereIsNone) {
  EXPECT_FALSE(CodeRegistration().status().ok());
  TestProfiler profiler;
  EXPECT_THAT(std::string(profiler.RegisterCode({}).status().message()),
              HasSubstr("generated code"));
  TestProfiler disabled({.enabled = false});
  EXPECT_TRUE(absl::IsFailedPrecondition(disabled.RegisterCode(Code(0x5000, 64)).status()));
}

}  // namespace
}  // namespace strobe
