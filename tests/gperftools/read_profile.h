// What the tests ask of a profile's file.
#pragma once

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include "gtest/gtest.h"
#include "strobe/testing/pprof_reader.h"

namespace strobe::testing {

inline std::string BytesOf(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// An empty profile, and a failed test, if the file is none.
inline PprofProfile ProfileAt(const std::filesystem::path& path) {
  const auto bytes = BytesOf(path);
  const auto profile = ReadPprof(bytes);
  EXPECT_TRUE(profile.has_value()) << path << " has " << bytes.size() << " bytes";
  if (!profile) return {};
  EXPECT_EQ(CheckPprof(*profile), "") << path;
  return *profile;
}

// The sum of the column over the samples with a function whose name has `function` in it.
inline std::int64_t AmountOf(const PprofProfile& profile, std::string_view function,
                             std::string_view column) {
  const auto type = std::ranges::find(profile.sample_types, column, &PprofProfile::ValueType::type);
  if (type == profile.sample_types.end()) return -1;
  std::int64_t sum = 0;
  for (const PprofProfile::Sample& sample : profile.samples) {
    const std::vector<std::string> stack = profile.Stack(sample);
    if (std::ranges::any_of(stack, [&](const std::string& name) {
          return name.find(function) != std::string::npos;
        }))
      sum += sample.values[static_cast<std::size_t>(type - profile.sample_types.begin())];
  }
  return sum;
}

}  // namespace strobe::testing
