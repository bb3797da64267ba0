// KnownVariables: the STROBE_ variables of all parts of Strobe, whatever a program links.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "strobe/core/settings/messages.h"

namespace strobe::internal {

inline constexpr std::string_view kVariablePrefix = "STROBE_";
// `strobe record` sets STROBE_RECORD_X for what it preloads, X being that of an option.
inline constexpr std::string_view kRecordPrefix = "STROBE_RECORD_";
// By which the processes of a recording are found: workers have none that begins STROBE_RECORD_.
inline constexpr const char* kRecordingVariable = "STROBE_RECORDING";
// `strobe record --duration` sets it for the programs that it records; they and their workers end
// their sessions then.
inline constexpr const char* kRecordingUntilVariable = "STROBE_RECORDING_UNTIL_NS";
// The number of filters of system calls that `strobe record` has itself, if it has some.
inline constexpr const char* kRecordingFiltersVariable = "STROBE_RECORDING_FILTERS";
// By the monotonic clock, from the variable's value. INT64_MAX, which never comes, if the variable
// has none or says no time.
std::int64_t RecordingUntilNs(const std::optional<std::string>& value);

// True for the variable of an option, of any library, and for what the command and the tests read.
bool IsKnownVariable(std::string_view name);

// One line for people for each of these names that is not known. `names` are those of the
// environment that begin with kVariablePrefix. None below `strobe record`, which has said it.
std::vector<std::string> UnknownVariables(std::span<const std::string> names);

// Calls warn(line) for each of UnknownVariables(names()). Only the first call in a process does
// anything: all profilers have the same environment.
void WarnOfUnknownVariables(const std::function<std::vector<std::string>()>& names,
                            const std::function<void(const std::string&)>& warn);
// The same for the environment and the messages of a Platform.
template <class P>
void WarnOfUnknownVariables() {
  KeepMessageTarget(P::EnvironmentVariable(kMessagesVariable));
  WarnOfUnknownVariables([] { return P::EnvironmentNames(kVariablePrefix); },
                         [](const std::string& line) { P::WriteLine(line); });
}

}  // namespace strobe::internal
