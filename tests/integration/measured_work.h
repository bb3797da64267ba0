// What tests of sessions measure: CPU time that a thread uses, and the columns of a profile.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "platform/test_system.h"
#include "strobe/core/profile.h"

namespace strobe::testing {

// Uses that much CPU time of the calling thread.
[[gnu::noinline]] inline void BurnCpu(std::int64_t cpu_ns) {
  const std::int64_t end_ns = ThreadCpuNs() + cpu_ns;
  std::uint64_t value = 1;
  while (ThreadCpuNs() < end_ns) {
    for (int i = 0; i < 2000; ++i) {
      value = value * 6364136223846793005U + 1442695040888963407U;
      asm volatile("" : "+r"(value));
    }
  }
}

// The index of the column named `type`, or -1.
inline int ColumnOf(const Profile& profile, std::string_view type) {
  for (std::size_t i = 0; i < profile.value_types.size(); ++i) {
    if (profile.value_types[i].type == type) return static_cast<int>(i);
  }
  return -1;
}

}  // namespace strobe::testing
