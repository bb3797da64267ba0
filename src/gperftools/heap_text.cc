#include "heap_text.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <map>

#include "absl/strings/str_cat.h"

namespace strobe::internal {
namespace {

// The columns of a row, which is "live objects: live bytes [all objects: all bytes] @".
constexpr std::array<std::string_view, 4> kColumns{"alloc_objects", "alloc_space", "inuse_objects",
                                                   "inuse_space"};
using Amounts = std::array<std::int64_t, kColumns.size()>;
void AppendAmounts(std::string& text, const Amounts& values) {
  absl::StrAppend(&text, values[2], ": ", values[3], " [", values[0], ": ", values[1], "] @");
}

}  // namespace

std::string HeapText(const Profile& profile, std::string_view maps) {
  // What is live and what was allocated is in different rows of a stack, by their labels.
  std::array<std::size_t, kColumns.size()> columns{};
  for (std::size_t k = 0; k < kColumns.size(); ++k) {
    const auto type = std::ranges::find(profile.value_types, kColumns[k], &ValueType::type);
    if (type == profile.value_types.end()) return {};
    columns[k] = static_cast<std::size_t>(type - profile.value_types.begin());
  }
  Amounts total{};
  std::map<std::uint32_t, Amounts> stacks;
  for (std::size_t i = 0; i < profile.samples.size(); ++i) {
    Amounts& stack = stacks[profile.samples[i].stack];
    for (std::size_t k = 0; k < total.size(); ++k) {
      stack[k] += profile.Values(i)[columns[k]];
      total[k] += profile.Values(i)[columns[k]];
    }
  }
  std::string rows;
  for (const auto& [leaf, amounts] : stacks) {
    if (amounts == Amounts{}) continue;
    AppendAmounts(rows, amounts);
    for (std::uint32_t node = leaf; node != 0; node = profile.stacks[node].parent) {
      const Frame& frame = profile.frames[profile.stacks[node].frame];
      // The format has return addresses, and frames have the address before.
      if (!frame.is_pseudo()) absl::StrAppend(&rows, " 0x", absl::Hex(frame.address + 1));
    }
    rows += '\n';
  }
  std::string text = "heap profile: ";
  AppendAmounts(text, total);
  absl::StrAppend(&text, " heapprofile\n", rows, "\nMAPPED_LIBRARIES:\n",
                  absl::string_view(maps.data(), maps.size()));
  return text;
}

}  // namespace strobe::internal
