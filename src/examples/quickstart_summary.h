// What the quickstart prints of its profile, which it reads from the file.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "strobe/core/share_error.h"
#include "strobe/core/stats.h"
#include "strobe/testing/pprof_profile.h"

// One value type (cpu or wall) of a profile, added up.
struct ValueSummary {
  std::int64_t total = 0;
  std::map<std::string, std::int64_t> flat_by_function;        // the function itself
  std::map<std::string, std::int64_t> cumulative_by_function;  // and all that it called
  std::map<std::string, std::int64_t> by_thread_name;
  std::map<std::string, std::int64_t>
      cut_by_thread_name;  // of that, in stacks that do not lead to the thread's first function
  strobe::EffectiveSamples samples;  // behind the shares; none if they are not counted
};

// The profile in the file at `path`; nothing if there is none.
std::optional<strobe::testing::PprofProfile> ReadProfile(const std::string& path);

// Sums of all values of type `type` ("cpu"); empty if the profile has none.
ValueSummary Summarize(const strobe::testing::PprofProfile& profile, std::string_view type);

// A thread's CPU time as it read it itself from the system's clock.
struct ThreadClock {
  std::string name;
  std::int64_t cpu_ns = 0;
};

void PrintTop(const ValueSummary& summary, const char* title);
void PrintThreads(const std::vector<ThreadClock>& threads, const ValueSummary& cpu);
void PrintAccount(const strobe::Stats& stats, std::int64_t process_cpu_ns);
