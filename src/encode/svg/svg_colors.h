// The fills of functions in a picture: those of HtmlEncoder's page in light (page/colors.js), as
// programs want them that do not know the colour space that the page names them in.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace strobe::internal {

inline constexpr std::string_view kPlainFill = "#d9d7d5";  // what is not code
inline constexpr std::string_view kRestFill = "#e0dddb";   // functions too narrow to be drawn

// A row a hue: three shades of functions, and three of inlined ones.
inline constexpr std::size_t kShades = 3;
inline constexpr std::array<std::array<std::string_view, 2 * kShades>, 10> kFills{{
    {"#ecaf79", "#f7b983", "#ffc28c", "#efcfb5", "#f9d9be", "#ffe3c8"},
    {"#7ac8f5", "#84d2ff", "#8ddcff", "#b7dcf3", "#c1e6fd", "#caf0ff"},
    {"#88d1a2", "#91dbab", "#9be5b4", "#bde0c8", "#c7ead1", "#d0f4db"},
    {"#cdaef2", "#d6b7fc", "#e0c1ff", "#ddcef1", "#e7d8fb", "#f1e2ff"},
    {"#65d2d2", "#6fdcdb", "#7ae6e5", "#b0e1e0", "#baebea", "#c4f5f4"},
    {"#eda4cc", "#f7add6", "#ffb7e0", "#efc9dd", "#f9d3e7", "#ffddf1"},
    {"#c1c476", "#cbcd80", "#d5d789", "#d7d9b4", "#e1e3bd", "#ebedc7"},
    {"#a2bcff", "#abc5ff", "#b5cfff", "#c8d5f8", "#d1dfff", "#dbe9ff"},
    {"#f8a49d", "#ffaea7", "#ffb8b0", "#f5cac5", "#ffd4cf", "#ffddd9"},
    {"#a8cb86", "#b2d58f", "#bbdf99", "#cbddbb", "#d5e7c4", "#dff1ce"},
}};

// `module` is an index into PageCode::modules, in which 0 is none. Equal names have equal shades.
inline std::string_view FillOfCode(std::uint32_t module, std::string_view name, bool is_inlined) {
  std::uint32_t hash = 0x811c9dc5;
  for (const char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 0x01000193;
  hash ^= hash >> 15;
  const std::size_t hue = module == 0 ? 0 : (module - 1) % kFills.size();
  return kFills[hue][(is_inlined ? kShades : 0) + hash % kShades];
}

}  // namespace strobe::internal
