// PprofProfile: the content of profile.proto, in a form for tests.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"

namespace strobe::testing {

// A profile with strings in place of their indices. Ids are those of the file.
struct PprofProfile {
  struct ValueType {
    std::string type, unit;
    friend bool operator==(const ValueType&, const ValueType&) = default;
  };
  struct Label {
    std::string key, text;
    std::int64_t number = 0;
  };
  struct Sample {
    std::vector<std::uint64_t> locations;
    std::vector<std::int64_t> values;
    std::vector<Label> labels;
  };
  struct Mapping {
    std::uint64_t id = 0, start = 0, limit = 0, file_offset = 0;
    std::string filename, build_id;
    bool has_functions = false, has_filenames = false, has_line_numbers = false;
    bool has_inline_frames = false;
  };
  struct Line {
    std::uint64_t function = 0;
    std::int64_t line = 0, column = 0;
  };
  struct Location {
    std::uint64_t id = 0, mapping = 0, address = 0;
    std::vector<Line> lines;  // innermost first
  };
  struct Function {
    std::uint64_t id = 0;
    std::string name, system_name, filename;
    std::int64_t start_line = 0;
  };

  std::vector<ValueType> sample_types;
  std::vector<Sample> samples;
  std::vector<Mapping> mappings;
  std::vector<Location> locations;
  std::vector<Function> functions;
  std::vector<std::string> strings;
  std::vector<std::string> comments;
  std::int64_t time_ns = 0, duration_ns = 0, period = 0;
  ValueType period_type;
  std::string default_sample_type;

  // The names of a sample's functions, leaf first; "" for a location without a line.
  [[nodiscard]] std::vector<std::string> Stack(const Sample& sample) const {
    std::vector<std::string> names;
    for (const std::uint64_t id : sample.locations) {
      for (const Location& location : locations) {
        if (location.id != id) continue;
        if (location.lines.empty()) names.emplace_back();
        for (const Line& line : location.lines) names.push_back(FunctionName(line.function));
      }
    }
    return names;
  }
  [[nodiscard]] std::string FunctionName(std::uint64_t id) const {
    for (const Function& function : functions) {
      if (function.id == id) return function.name;
    }
    return "";
  }
};

// Checks what pprof requires, and that addresses lie in their mappings. Returns the first fault, or
// an empty string.
inline std::string CheckPprof(const PprofProfile& profile) {
  absl::flat_hash_map<std::uint64_t, const PprofProfile::Mapping*> mappings;
  absl::flat_hash_map<std::uint64_t, const PprofProfile::Function*> functions;
  absl::flat_hash_map<std::uint64_t, const PprofProfile::Location*> locations;
  for (const auto& mapping : profile.mappings) {
    if (mapping.id == 0 || !mappings.emplace(mapping.id, &mapping).second)
      return absl::StrCat("mapping id ", mapping.id);
  }
  for (const auto& function : profile.functions) {
    if (function.id == 0 || !functions.emplace(function.id, &function).second)
      return absl::StrCat("function id ", function.id);
  }
  for (const auto& location : profile.locations) {
    if (location.id == 0 || !locations.emplace(location.id, &location).second)
      return absl::StrCat("location id ", location.id);
    for (const auto& line : location.lines) {
      if (!functions.contains(line.function))
        return absl::StrCat("location ", location.id, " names function ", line.function);
    }
    if (location.mapping == 0) continue;
    const auto mapping = mappings.find(location.mapping);
    if (mapping == mappings.end())
      return absl::StrCat("location ", location.id, " names mapping ", location.mapping);
    if (location.address < mapping->second->start || location.address >= mapping->second->limit) {
      return absl::StrCat("location ", location.id, " lies outside its mapping");
    }
  }
  for (std::size_t i = 0; i < profile.samples.size(); ++i) {
    if (profile.samples[i].values.size() != profile.sample_types.size())
      return absl::StrCat("number of values of sample ", i);
    for (const std::uint64_t location : profile.samples[i].locations) {
      if (!locations.contains(location))
        return absl::StrCat("sample ", i, " names location ", location);
    }
  }
  return "";
}

}  // namespace strobe::testing
