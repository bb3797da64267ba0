#include "strobe/platform/platform.h"

#include "gtest/gtest.h"
#include "strobe/testing/fakes/archetypes.h"

namespace strobe {
namespace {

struct PlatformWithoutForks : testing::ArchetypePlatform {
  static void ForkCount() {}
};
static_assert(!Platform<PlatformWithoutForks>,
              "a platform without forks still counts them, and always says the same");

struct PlatformWithAStuckThread : testing::ArchetypePlatform {
  struct OwnThread {
    OwnThread() = default;
    OwnThread(const OwnThread&) = delete;
    [[nodiscard]] bool IsRunning() const { return false; }
    void Join() {}
    void Detach() {}
  };
  static OwnThread RunOnOwnThread(const char* /*name*/, const std::function<void()>& /*body*/) {
    return {};
  }
};
static_assert(!Platform<PlatformWithAStuckThread>, "a thread's owner keeps it in a member");

template <Platform P>
std::string Describe() {
  return P::ProgramName() + (P::Available().ok() ? " can" : " cannot");
}

TEST(Platform, CodeThatAsksForAPlatformTakesAnyModel) {
  EXPECT_EQ(Describe<testing::ArchetypePlatform>(), "program can");
}

}  // namespace
}  // namespace strobe
