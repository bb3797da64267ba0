// What gperftools' environment variables say. Compiled into each library that asks.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "strobe/core/settings/option_rows.h"
#include "strobe/platform/native.h"

namespace strobe::internal {

// The path that the variable `name` asks for; nothing if the variable is not set or empty. No
// variable is set for a program that has more rights than the user who began it: see Platform. The
// first process of a program has the path itself. Sets NAME_USE_PID=1 for its children: theirs ends
// in _PID.
inline std::optional<std::string> UniquePath(const std::string& name) {
  const auto path = NativePlatform::EnvironmentVariable(name.c_str());
  if (!path || path->empty()) return std::nullopt;
  const std::string marker = name + "_USE_PID";
  const std::string mark = NativePlatform::EnvironmentVariable(marker.c_str()).value_or("");
  if (!mark.empty() && std::string_view("tTyY1").find(mark.front()) != std::string_view::npos)
    return absl::StrCat(*path, "_", NativePlatform::ProcessId());
  setenv(marker.c_str(), "1", 1);
  return path;
}

// The variable's value. Nothing if it is not set, or no integer from `least` to `most`; in the
// second case, one line on standard error says so.
inline std::optional<std::int64_t> NumberVariable(const char* name, std::int64_t least,
                                                  std::int64_t most) {
  const auto text = NativePlatform::EnvironmentVariable(name);
  if (!text || text->empty()) return std::nullopt;
  std::int64_t number = 0;
  if (ParseOption(*text, number) && number >= least && number <= most) return number;
  NativePlatform::WriteLine(absl::StrCat(
      "strobe: ", name, "=", *text, " is ignored: expected an integer from ", least, " to ", most));
  return std::nullopt;
}

// True if the variable is set.
inline bool IsVariableSet(const char* name) {
  return NativePlatform::EnvironmentVariable(name).has_value();
}

}  // namespace strobe::internal
