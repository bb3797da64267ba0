// What the formats that show text say of a row besides its stack, and of a frame.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "sample_parts.h"
#include "strobe/core/label_set.h"
#include "strobe/core/profile.h"
#include "strobe/encode/profile_view.h"

namespace strobe::internal {

// The short names of a view's functions, by their numbers, as valid UTF-8.
std::vector<std::string> ShortNames(const ProfileView& view);

// "main", or "thread 4243" if the thread has no name.
std::string ThreadText(std::int64_t id, std::string_view name);

// The labels of a set that the program has set, as "key=value", and those of the thread left out.
std::vector<std::string> LabelTexts(const LabelSet& set);
// True if the label is one that each row has.
bool IsThreadLabel(const Label& label);
// A label's value as text.
std::string ValueText(const Label& label);

// The column of the value type with the name `type`; `preferred` if the name is empty.
// InvalidArgument if the profile has no such value type.
absl::StatusOr<std::size_t> FindColumn(const Profile& profile, std::string_view type,
                                       std::size_t preferred);

// A thread, and the parts of its rows.
struct ThreadParts {
  std::int64_t id = 0;
  std::string name;
  std::vector<const ProfileThread*> lives;  // its registrations in the period
  std::vector<SamplePart> parts;            // in the order of SampleParts
};

// The threads of a profile, and then those that only labels name.
std::vector<ThreadParts> PartsByThread(const Profile& profile, const SampleParts& parts);

}  // namespace strobe::internal
