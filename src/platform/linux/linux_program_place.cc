#include <fstream>
#include <iterator>

#include "strobe/platform/program_place.h"

namespace strobe::internal {
namespace {

std::string ContentOf(const char* path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace

std::string HostName() {
  const std::string name = ContentOf("/proc/sys/kernel/hostname");
  return name.substr(0, name.find('\n'));
}

std::string ContainerId() { return ContainerIdIn(ContentOf("/proc/self/cgroup")); }

std::string ProgramCommandLine() {
  std::string text = ContentOf("/proc/self/cmdline");
  while (text.ends_with('\0')) text.pop_back();
  return text;
}

}  // namespace strobe::internal
