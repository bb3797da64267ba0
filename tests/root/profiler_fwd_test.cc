#include "strobe/profiler_fwd.h"

#include <type_traits>

#include "gtest/gtest.h"

namespace {

// A class as a program's header has it, with no more of Strobe than the names.
class Server {
 public:
  explicit Server(strobe::Profiler& profiler) : profiler_(profiler) {}
  [[nodiscard]] bool Serve() const;

 private:
  strobe::Profiler& profiler_;
};

}  // namespace

// As the class's source has it.
#include "strobe/platform/native.h"
#include "strobe/strobe.h"

namespace {

bool Server::Serve() const {
  const auto registration = profiler_.RegisterThread("server");
  return registration.status().ok() == strobe::NativePlatform::Available().ok();
}

TEST(ProfilerFwd, TheNamesAreThoseOfTheDefaultParts) {
  static_assert(std::is_same_v<strobe::Profiler, strobe::BasicProfiler<strobe::DefaultTraits>>);
  static_assert(
      std::is_same_v<strobe::ScopedProfiler, strobe::BasicScopedProfiler<strobe::DefaultTraits>>);
  strobe::Profiler profiler;
  EXPECT_TRUE(Server(profiler).Serve());
}

}  // namespace
