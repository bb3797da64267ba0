// RecordedEnvironment: what the environment of a program must have so that it is recorded, too.
#pragma once

#include <cstddef>

namespace strobe::internal {

// Keeps, of the environment that this program has been started with, what makes a recording: to be
// called once, at the load. Keeps nothing if the program is not recorded.
void KeepRecordedEnvironment(const char* const* environment) noexcept;

// Pointers that an environment needs more than `environment` has, its last one included; 0 if that
// is complete, if the program is not recorded, or if it is too large to be completed. An
// environment that has a variable of the recording is complete: who takes others away wants that.
// Signal-safe, and for a child of vfork, as the next function.
std::size_t PointersOfRecorded(char* const* environment) noexcept;

// Writes to `pointers`, of which there are as many, and to `text`, of kPreloadBytes, the
// environment with what it lacks.
inline constexpr std::size_t kPreloadBytes = 4096;
void WriteRecorded(char* const* environment, char** pointers, char* text) noexcept;

// Calls call(environment), with what the environment lacks. The stack holds that.
template <class Call>
int WithRecordedEnvironment(char* const* environment, const Call& call) noexcept {
  const std::size_t count = PointersOfRecorded(environment);
  if (count == 0) return call(environment);
  auto** const pointers = static_cast<char**>(__builtin_alloca(count * sizeof(char*)));
  auto* const text = static_cast<char*>(__builtin_alloca(kPreloadBytes));
  WriteRecorded(environment, pointers, text);
  return call(pointers);
}

}  // namespace strobe::internal
