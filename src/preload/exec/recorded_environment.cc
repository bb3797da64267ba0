#include "recorded_environment.h"

#include <errno.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <string_view>

#include "strobe/core/settings/known_variables.h"

namespace strobe::internal {
namespace {

// Beyond these, a program that is executed with another environment is not recorded.
constexpr std::size_t kMaxKeptVariables = 48;
constexpr std::size_t kMaxKeptBytes = 16384;
constexpr std::size_t kMaxVariables = 4096;  // of the other environment

constexpr std::string_view kPreload = "LD_PRELOAD=";
// What all variables of a recording begin with.
constexpr std::string_view kOfRecording = "STROBE_RECORD";

// Variables, each with its terminating zero. The first is LD_PRELOAD with this library alone.
constinit std::array<char, kMaxKeptBytes> kept_bytes{};
constinit std::array<char*, kMaxKeptVariables> kept_variables{};
constinit std::size_t kept_count = 0;
constinit std::size_t kept_end = 0;

bool KeepVariable(std::string_view variable) {
  if (kept_count == kMaxKeptVariables || kMaxKeptBytes - kept_end <= variable.size()) return false;
  char* const copy = kept_bytes.data() + kept_end;
  std::memcpy(copy, variable.data(), variable.size());
  kept_end += variable.size() + 1;
  kept_variables[kept_count++] = copy;
  return true;
}

bool IsOfRecording(const char* variable) {
  return std::strncmp(variable, kOfRecording.data(), kOfRecording.size()) == 0;
}
bool IsPreload(const char* variable) {
  return std::strncmp(variable, kPreload.data(), kPreload.size()) == 0;
}

}  // namespace

void KeepRecordedEnvironment(const char* const* environment) noexcept {
  std::string_view preload;
  bool is_recorded = false;
  for (const char* const* variable = environment; *variable != nullptr; ++variable) {
    if (IsPreload(*variable)) preload = *variable;
    is_recorded = is_recorded || IsOfRecording(*variable);
  }
  // `strobe record` puts its library before others.
  preload = preload.substr(0, preload.find(':'));
  if (!is_recorded || preload.size() <= kPreload.size()) return;
  bool is_whole = KeepVariable(preload);
  for (const char* const* variable = environment; is_whole && *variable != nullptr; ++variable) {
    if (IsOfRecording(*variable)) is_whole = KeepVariable(*variable);
  }
  if (!is_whole) kept_count = 0;
}

std::size_t PointersOfRecorded(char* const* environment) noexcept {
  if (kept_count == 0 || environment == nullptr) return 0;
  std::size_t count = 0;
  for (; environment[count] != nullptr; ++count) {
    const bool is_too_long = IsPreload(environment[count]) &&
                             std::strlen(environment[count]) + kept_end >= kPreloadBytes;
    if (IsOfRecording(environment[count]) || is_too_long || count == kMaxVariables) return 0;
  }
  // In another root, the loader would complain of a library that is not there.
  const int saved_errno = errno;
  const bool is_here = access(kept_variables[0] + kPreload.size(), R_OK) == 0;
  errno = saved_errno;
  return is_here ? count + kept_count + 1 : 0;
}

void WriteRecorded(char* const* environment, char** pointers, char* text) noexcept {
  char** const own_preload = pointers;
  pointers = std::copy_n(kept_variables.begin(), kept_count, pointers);
  for (; *environment != nullptr; ++environment) {
    if (!IsPreload(*environment)) {
      *pointers++ = *environment;
      continue;
    }
    // The loader takes one variable of this name: ours, and behind it theirs.
    const std::string_view own(kept_variables[0]);
    const std::string_view theirs = std::string_view(*environment).substr(kPreload.size());
    char* end = std::ranges::copy(own, text).out;
    *end++ = ':';
    *std::ranges::copy(theirs, end).out = '\0';
    *own_preload = text;
  }
  *pointers = nullptr;
}

}  // namespace strobe::internal
