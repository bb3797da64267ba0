// LoadedProfile: a profile as the command has read it, whatever the format of its file.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "strobe/core/profile.h"
#include "strobe/core/symbols.h"

namespace strobe::internal {

// A comment that begins so goes on with the program's name, and ", process " behind it.
inline constexpr std::string_view kProgramComment = "strobe: program ";

// Filters, merges and encoders work on the Profile and its Symbols, as in a profiler. Differences:
// * Frames of files without addresses have the address 0 and no module. So frames may be equal, and
//   their symbols tell them apart.
// * Values may be less than 0: other tools write differences of profiles.
// * `profile.stats` is empty. What a profiler says of itself is in `comments`.
struct LoadedProfile {
  Profile profile;
  Symbols symbols;
  std::string format;                 // of the file: "pprof", "folded stacks" or "perf script"
  std::vector<std::string> comments;  // of the file, as texts for people
  // Of pprof's files: see PprofOptions.
  std::map<std::string, std::string, std::less<>> number_units;
  std::string drop_frames, keep_frames;
  std::deque<std::string> texts;  // what the value types refer to

  LoadedProfile() = default;
  // Not copied: the value types of a copy would refer to the texts of the original.
  LoadedProfile(LoadedProfile&&) = default;
  LoadedProfile& operator=(LoadedProfile&&) = default;

  // Texts of files come from anywhere. From here on none controls a terminal: see SanitizedText.
  // But the paths of modules stay, because they name files.
  void CleanTexts();

  // How often its work was done, by its comments: see strobe/encode/iterations.h. 0 if they do not
  // say, or differ.
  [[nodiscard]] double Iterations() const;
  // Replaces what the comments say; 0 leaves none.
  void SetIterations(double iterations);

  // `text` for as long as this profile lives.
  std::string_view Keep(std::string text) { return texts.emplace_back(std::move(text)); }
};

}  // namespace strobe::internal
