#include "strobe/platform/unsupported_platform.h"

#include <cstdio>
#include <cstdlib>

#include "strobe/export/profile_directories.h"
#include "strobe/symbolize/symbol_files.h"
#if defined(__linux__)
#include "strobe/platform/linux/linux_platform.h"
#elif defined(_WIN32)
#include "strobe/platform/windows/windows_platform.h"
#endif

namespace strobe {

absl::Status UnsupportedPlatform::Available() {
#if defined(STROBE_DISABLED)
  return absl::UnimplementedError("this build leaves profiling out (-Denabled=false)");
#else
  return absl::UnimplementedError(
      "profiling works on Linux for x86-64 and aarch64, and on Windows for x64; this is another "
      "system or CPU");
#endif
}

std::optional<std::string> UnsupportedPlatform::EnvironmentVariable(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? std::nullopt : std::optional<std::string>(value);
}

const SymbolFiles& UnsupportedPlatform::Files() {
#if defined(__linux__)
  return LinuxPlatform::Files();
#elif defined(_WIN32)
  return WindowsPlatform::Files();
#else
  static constexpr NoSymbolFiles kNone;
  return kNone;
#endif
}

const ProfileDirectories& UnsupportedPlatform::Directories() {
#if defined(__linux__)
  return LinuxPlatform::Directories();
#elif defined(_WIN32)
  return WindowsPlatform::Directories();
#else
  static constexpr NoProfileDirectories kNone;
  return kNone;
#endif
}

void UnsupportedPlatform::WriteLine(const std::string& text) {
  std::fprintf(stderr, "%s\n", text.c_str());
}

}  // namespace strobe
