// The profiles that a program has written into a directory.
#pragma once

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "strobe/testing/pprof_reader.h"

namespace strobe::testing {

// All of them, and each must be whole. A temporary may be left behind by a program that was ended.
inline std::vector<PprofProfile> WrittenProfiles(const std::filesystem::path& directory) {
  std::vector<PprofProfile> profiles;
  for (const auto& entry : std::filesystem::directory_iterator(directory)) {
    if (entry.path().extension() == ".tmp") continue;
    std::ifstream file(entry.path(), std::ios::binary);
    std::optional<PprofProfile> profile =
        ReadPprof(std::string(std::istreambuf_iterator<char>(file), {}));
    EXPECT_TRUE(profile) << entry.path();
    if (profile) profiles.push_back(*std::move(profile));
  }
  return profiles;
}

// Whether a profile has a function of which this is a part of the name.
inline bool ShowFunction(const std::vector<PprofProfile>& profiles, std::string_view name) {
  return std::any_of(profiles.begin(), profiles.end(), [&](const PprofProfile& profile) {
    return std::any_of(profile.functions.begin(), profile.functions.end(),
                       [&](const PprofProfile::Function& function) {
                         return function.name.find(name) != std::string::npos;
                       });
  });
}

}  // namespace strobe::testing
