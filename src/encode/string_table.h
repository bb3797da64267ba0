// StringTable: the texts of a message that refers to texts by number.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "strobe/core/thread_info.h"

namespace strobe::internal {

// Each distinct string once, as valid UTF-8, numbered in the order of first use; 0 is the empty
// string.
class StringTable {
 public:
  // `text` must outlive the table.
  std::uint32_t Index(std::string_view text) {
    if (!IsAscii(text)) return IndexOwned(std::string(text));
    const auto [entry, is_new] = numbers_.try_emplace(text, Next());
    if (is_new) strings_.push_back(text);
    return entry->second;
  }

  // The table keeps `text`.
  std::uint32_t IndexOwned(std::string text) {
    if (!IsAscii(text)) text = ValidUtf8(text);
    const auto entry = numbers_.find(text);
    if (entry != numbers_.end()) return entry->second;
    const std::string_view kept = owned_.emplace_back(std::move(text));
    numbers_.emplace(kept, Next());
    strings_.push_back(kept);
    return Next() - 1;
  }

  // Strings in the order of their numbers.
  [[nodiscard]] const std::vector<std::string_view>& strings() const { return strings_; }

 private:
  static bool IsAscii(std::string_view text) {
    return std::ranges::all_of(text, [](char c) { return static_cast<unsigned char>(c) < 0x80; });
  }
  [[nodiscard]] std::uint32_t Next() const { return static_cast<std::uint32_t>(strings_.size()); }

  std::vector<std::string_view> strings_{""};
  std::unordered_map<std::string_view, std::uint32_t> numbers_{{"", 0}};  // an insertion may throw
  std::deque<std::string> owned_;  // a deque does not move its elements
};

}  // namespace strobe::internal
