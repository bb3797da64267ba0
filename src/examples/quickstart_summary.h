// What the quickstart prints of its profile, taken on the way to the file by an encoder of its own.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "strobe/core/profile.h"
#include "strobe/core/stats.h"
#include "strobe/core/symbols.h"
#include "strobe/encode/encoder.h"
#include "strobe/encode/pprof_encoder.h"

// One value type (cpu or wall) of a profile, added up.
struct ValueSummary {
  std::int64_t total = 0;
  std::map<std::string, std::int64_t> flat_by_function;        // the function itself
  std::map<std::string, std::int64_t> cumulative_by_function;  // and all that it called
  std::map<std::string, std::int64_t> by_thread_name;
  std::map<std::string, std::int64_t>
      cut_by_thread_name;  // of that, in stacks that do not lead to the thread's first function
  double samples = 0;      // behind the shares: see EffectiveSamples. 0 if they are not counted
};

// Sums of all values of type `type` ("cpu"); empty if the profile has none.
ValueSummary Summarize(const strobe::Profile& profile, const strobe::Symbols& symbols,
                       std::string_view type);

// Of the last profile. Written on the exporter's thread; read it after Stop.
struct Summary {
  ValueSummary cpu;
  ValueSummary wall;
};

// An encoder sees each profile with its names, so it is the place for a summary; the bytes are made
// by the encoder under it.
class SummarizingEncoder {
 public:
  static constexpr std::string_view kFileSuffix = strobe::PprofEncoder::kFileSuffix;
  static constexpr std::string_view kContentType = strobe::PprofEncoder::kContentType;

  // `summary` must outlive the profiler.
  explicit SummarizingEncoder(Summary& summary) : summary_(&summary) {}

  absl::StatusOr<std::string> Encode(const strobe::Profile& profile,
                                     const strobe::Symbols& symbols) {
    summary_->cpu = Summarize(profile, symbols, "cpu");
    summary_->wall = Summarize(profile, symbols, "wall");
    return encoder_.Encode(profile, symbols);
  }

 private:
  Summary* summary_;
  strobe::PprofEncoder encoder_;
};
static_assert(strobe::Encoder<SummarizingEncoder>);

// A thread's CPU time as it read it itself from the system's clock.
struct ThreadClock {
  std::string name;
  std::int64_t cpu_ns = 0;
};

void PrintTop(const ValueSummary& summary, const char* title);
void PrintThreads(const std::vector<ThreadClock>& threads, const ValueSummary& cpu);
void PrintAccount(const strobe::Stats& stats, std::int64_t process_cpu_ns);
