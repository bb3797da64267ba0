// A whole file.
#pragma once

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <string>
#include <vector>

namespace strobe::testing {

// Nothing for what is no regular file, or cannot be read.
inline std::optional<std::vector<std::uint8_t>> FileBytes(const std::string& path) {
  if (!std::filesystem::is_regular_file(path)) return std::nullopt;
  std::ifstream stream(path, std::ios::binary);
  if (!stream) return std::nullopt;
  return std::vector<std::uint8_t>(std::istreambuf_iterator<char>(stream), {});
}

}  // namespace strobe::testing
