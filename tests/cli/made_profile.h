// MadeProfile: a small profile as the command has it, made of functions' names row by row.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "../../src/cli/profile/loaded_profile.h"
#include "../../src/cli/profile/profile_builder.h"

namespace strobe::internal {

class MadeProfile {
 public:
  using Names = std::initializer_list<const char*>;
  using Amounts = std::initializer_list<std::int64_t>;

  explicit MadeProfile(std::initializer_list<ValueType> types = {{"samples", "count"}}) {
    builder_.profile().value_types = types;
  }

  // The row of the stack of functions from the root to the leaf, to which the values are added.
  std::uint32_t Add(Names names, Amounts values, LabelSet labels = {}) {
    std::vector<std::uint32_t> frames;
    for (const char* name : names) frames.insert(frames.begin(), Frame(name));
    return builder_.AddRow(builder_.Stack(frames), builder_.Labels(std::move(labels)), values);
  }
  // A part of that row.
  void AddMoment(std::uint32_t row, std::int64_t time_ns, Amounts values) {
    builder_.AddMoment(row, time_ns, values);
  }
  // The frame of a function: code without an address.
  std::uint32_t Frame(const std::string& name) {
    const auto next = static_cast<std::uint32_t>(builder_.profile().frames.size());
    const auto [place, is_new] = frames_.try_emplace(name, next);
    if (is_new) {
      builder_.profile().frames.push_back({});
      builder_.symbols().functions.push_back({.name = name, .system_name = name});
      builder_.symbols().frames.push_back({.function = next});
    }
    return place->second;
  }
  [[nodiscard]] Profile& profile() { return builder_.profile(); }
  [[nodiscard]] Symbols& symbols() { return builder_.symbols(); }

  LoadedProfile Finish() { return builder_.Finish(); }

 private:
  ProfileBuilder builder_;
  std::map<std::string, std::uint32_t> frames_;
};

// The rows as folded stacks say them: "root;leaf 1 2".
inline std::vector<std::string> RowsOf(const LoadedProfile& loaded) {
  const Profile& profile = loaded.profile;
  std::vector<std::string> rows;
  for (std::size_t i = 0; i < profile.samples.size(); ++i) {
    std::string row;
    for (std::uint32_t node = profile.samples[i].stack; node != 0;
         node = profile.stacks[node].parent) {
      const std::uint32_t frame = profile.stacks[node].frame;
      const std::uint32_t function = loaded.symbols.frames[frame].function;
      const std::string name(
          profile.frames[frame].is_pseudo() ? profile.PseudoName(profile.frames[frame])
          : function == FrameSymbols::kNone ? "?"
                                            : loaded.symbols.functions[function].name);
      row = row.empty() ? name : name + ";" + row;
    }
    for (const std::int64_t value : profile.Values(i)) row += " " + std::to_string(value);
    rows.push_back(row);
  }
  return rows;
}

}  // namespace strobe::internal
