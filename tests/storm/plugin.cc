// What the storm loads, calls and unloads. Compiled without frame pointers, as libraries are.
#include <stdexcept>

extern "C" int StormPluginRun(int depth) {
  if (depth > 0) {
    int volatile room[16] = {depth};
    return StormPluginRun(depth - 1) + room[0];
  }
  try {
    throw std::runtime_error("from a library that will be gone");
  } catch (const std::runtime_error& error) {
    return error.what()[0];
  }
}
