// TextFrames: what readers of text share: words, numbers, and frames that have names.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/numbers.h"
#include "profile/profile_builder.h"
#include "strobe/core/stack.h"
#include "strobe/core/thread_info.h"

namespace strobe::internal {

inline constexpr std::size_t kMaxLineBytes = std::size_t{1} << 20;
// Of a stack.
inline constexpr std::size_t kMaxTextFrames = std::size_t{1} << 16;

inline absl::string_view Absl(std::string_view text) { return {text.data(), text.size()}; }

inline bool TakeNumber(std::string_view text, std::int64_t& number) {
  return !text.empty() && text[0] >= '0' && text[0] <= '9' && absl::SimpleAtoi(Absl(text), &number);
}

inline std::string_view WithoutSpaces(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

// Takes the last word off `text`.
inline std::string_view LastWord(std::string_view& text) {
  text = WithoutSpaces(text);
  const std::size_t space = text.find_last_of(" \t");
  const std::size_t begin = space == std::string_view::npos ? 0 : space + 1;
  return std::exchange(text, text.substr(0, begin)).substr(begin);
}

// Takes the first word off `text`.
inline std::string_view FirstWord(std::string_view& text) {
  text = WithoutSpaces(text);
  const std::string_view word = text.substr(0, text.find_first_of(" \t"));
  text = WithoutSpaces(text.substr(word.size()));
  return word;
}

// Numbers frames by function, module and address.
class TextFrames {
 public:
  explicit TextFrames(ProfileBuilder& builder) : builder_(builder) {}

  // A frame that has only a name.
  std::uint32_t Named(std::string_view name) { return Find(0, Frame::kNoModule, name); }

  // A frame of perf's. The module's range becomes that of its addresses.
  std::uint32_t InModule(std::uint64_t address, std::string_view name, std::string_view path) {
    const auto next = static_cast<std::uint32_t>(builder_.profile().modules.size());
    const auto [place, is_new] = modules_.try_emplace(std::string(path), next);
    if (is_new) {
      Module module;
      module.start = address;
      module.limit = address + 1;
      module.path = path;
      const bool is_file =
          !path.starts_with('[') && !path.starts_with("//") && !path.starts_with("/memfd:");
      module.kind = is_file ? ModuleKind::kSharedLibrary : ModuleKind::kGeneratedCode;
      builder_.profile().modules.push_back(std::move(module));
      builder_.Take(2 * (sizeof(Module) + path.size()));
    }
    Module& module = builder_.profile().modules[place->second];
    module.start = std::min(module.start, address);
    module.limit = std::max(module.limit, address + 1);
    return Find(address, place->second, name);
  }

 private:
  std::uint32_t Find(std::uint64_t address, std::uint32_t module, std::string_view name) {
    Profile& profile = builder_.profile();
    const auto next = static_cast<std::uint32_t>(profile.frames.size());
    const auto [place, is_new] = frames_.try_emplace({Function(name, module), address}, next);
    if (!is_new) return place->second;
    profile.frames.push_back({address, module});
    builder_.symbols().frames.push_back({.function = place->first.first});
    builder_.Take(2 * (sizeof(Frame) + sizeof(FrameSymbols) + 2 * sizeof(*place)));
    for (std::size_t i = 0; i < kPseudoFrameCount && module == Frame::kNoModule; ++i) {
      if (name != PseudoFrameName(static_cast<PseudoFrame>(i))) continue;
      profile.frames.back() = {.address = i, .module = Frame::kPseudo};
      builder_.symbols().frames.back() = {};
    }
    return next;
  }

  std::uint32_t Function(std::string_view name, std::uint32_t module) {
    const auto next = static_cast<std::uint32_t>(builder_.symbols().functions.size());
    const auto [place, is_new] = functions_.try_emplace({std::string(name), module}, next);
    if (!is_new) return place->second;
    std::string text = ValidUtf8(name);
    builder_.Take(2 * sizeof(FunctionSymbol) + 3 * name.size());
    builder_.symbols().functions.push_back({.name = text, .system_name = text});
    if (name == "[unknown]") builder_.symbols().functions.back().resolved = false;
    return next;
  }

  ProfileBuilder& builder_;
  absl::flat_hash_map<std::pair<std::string, std::uint32_t>, std::uint32_t> functions_;
  absl::flat_hash_map<std::pair<std::uint32_t, std::uint64_t>, std::uint32_t> frames_;
  absl::flat_hash_map<std::string, std::uint32_t> modules_;
};

}  // namespace strobe::internal
