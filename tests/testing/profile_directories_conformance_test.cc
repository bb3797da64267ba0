// The native platform has this system's directories, and so has a processor that cannot be profiled
// yet. The fake promises the same.
#include "strobe/testing/profile_directories_conformance.h"

#include <string>

#include "strobe/platform/native.h"
#include "strobe/platform/unsupported_platform.h"
#include "strobe/testing/fakes/manual_directories.h"

namespace strobe::testing {

class ManualDirectoriesHarness {
 public:
  [[nodiscard]] const ProfileDirectories& Directories() const { return directories_; }
  [[nodiscard]] std::string Root() const { return "/root"; }
  [[nodiscard]] std::string Read(const std::string& path) const {
    return directories_.Read(path).value_or("no file");
  }
  [[nodiscard]] bool Vanish(const std::string& path) {
    directories_.Vanish(path);
    return true;
  }

 private:
  ManualDirectories directories_;
};

INSTANTIATE_TYPED_TEST_SUITE_P(Native, ProfileDirectoriesConformance,
                               PlatformDirectories<NativePlatform>);
INSTANTIATE_TYPED_TEST_SUITE_P(Unsupported, ProfileDirectoriesConformance,
                               PlatformDirectories<UnsupportedPlatform>);
INSTANTIATE_TYPED_TEST_SUITE_P(Manual, ProfileDirectoriesConformance, ManualDirectoriesHarness);

}  // namespace strobe::testing
