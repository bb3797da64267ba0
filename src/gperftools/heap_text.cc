#include "heap_text.h"

#include <array>
#include <cstdint>
#include <map>

#include "absl/strings/str_cat.h"

namespace strobe::internal {
namespace {

// "live objects: live bytes [all objects: all bytes] @", from columns in the provider's order.
using Amounts = std::array<std::int64_t, 4>;
void AppendAmounts(std::string& text, const Amounts& values) {
  absl::StrAppend(&text, values[2], ": ", values[3], " [", values[0], ": ", values[1], "] @");
}

}  // namespace

std::string HeapText(const Profile& profile, std::string_view maps) {
  // What is live and what was allocated is in different rows of a stack, by their labels.
  Amounts total{};
  std::map<std::uint32_t, Amounts> stacks;
  for (std::size_t i = 0; i < profile.samples.size(); ++i) {
    Amounts& stack = stacks[profile.samples[i].stack];
    for (std::size_t k = 0; k < total.size(); ++k) {
      stack[k] += profile.Values(i)[k];
      total[k] += profile.Values(i)[k];
    }
  }
  std::string rows;
  for (const auto& [leaf, amounts] : stacks) {
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
