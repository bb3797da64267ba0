#include "strobe/platform/program_place.h"

#include <algorithm>
#include <cstddef>

namespace strobe::internal {
namespace {

bool IsContainerId(std::string_view text) {
  return (text.size() == 64 || text.size() == 36) &&
         text.find_first_not_of("0123456789abcdef-") == std::string_view::npos;
}

// The last part of a path, without what runtimes put around an id: "docker-ID.scope",
// "cri-containerd:ID".
std::string_view IdPart(std::string_view line) {
  constexpr std::string_view kScope = ".scope";
  std::string_view part = line.substr(line.rfind('/') + 1);
  if (part.ends_with(kScope)) part.remove_suffix(kScope.size());
  part.remove_prefix(part.rfind(':') + 1);
  const std::size_t dash = part.rfind('-');
  if (dash != std::string_view::npos && part.size() - dash - 1 == 64) part.remove_prefix(dash + 1);
  return part;
}

}  // namespace

std::string ContainerIdIn(std::string_view control_groups) {
  while (!control_groups.empty()) {
    const std::string_view line = control_groups.substr(0, control_groups.find('\n'));
    control_groups.remove_prefix(std::min(line.size() + 1, control_groups.size()));
    if (const std::string_view part = IdPart(line); IsContainerId(part)) return std::string(part);
  }
  return {};
}

}  // namespace strobe::internal
