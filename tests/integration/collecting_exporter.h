// CollectingExporter keeps what a session exports, so that a test can look at whole Profiles; and
// what the tests of sessions share.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "counted_walks.h"
#include "gtest/gtest.h"
#include "measured_work.h"
#include "strobe/base/sanitizers.h"
#include "strobe/own_parts.h"

namespace strobe::testing {

// Late: a sanitizer holds a signal back until the thread's next call of the C library, so that the
// registers that the handler gets are of another place than its stack, and a second signal
// meanwhile is dropped. Amounts hold all the same; stacks mean nothing.
inline constexpr bool kSignalsAreLate = internal::kHasThreadSanitizer;

class CollectingExporter {
 public:
  static constexpr bool kBringsNoFiles = true;
  struct Exported {
    Profile profile;
    std::string bytes;
  };

  explicit CollectingExporter(const ExporterOptions& /*options*/) {}
  absl::StatusOr<std::string> Export(const ExportRequest& request) {
    const std::lock_guard lock(Mutex());
    All().push_back({request.profile, std::string(request.bytes)});
    return std::string("memory");
  }

  // Everything exported since the last call.
  static std::vector<Exported> Take() {
    const std::lock_guard lock(Mutex());
    return std::exchange(All(), {});
  }
  // Whether accepts(exported) holds for any profile exported since the last Take.
  template <class Accepts>
  static bool HasProfile(const Accepts& accepts) {
    const std::lock_guard lock(Mutex());
    return std::any_of(All().begin(), All().end(), accepts);
  }
  // Whether accepts(profile, row) holds for any row of such a profile.
  template <class Accepts>
  static bool HasRow(const Accepts& accepts) {
    return HasProfile([&](const Exported& exported) {
      for (std::size_t row = 0; row < exported.profile.samples.size(); ++row) {
        if (accepts(exported.profile, row)) return true;
      }
      return false;
    });
  }

 private:
  static std::mutex& Mutex() {
    static auto* const mutex = new std::mutex;
    return *mutex;
  }
  static std::vector<Exported>& All() {
    static auto* const all = new std::vector<Exported>;
    return *all;
  }
};

struct CollectingTraits : DefaultTraits {
  using Outputs = OutputList<Output<PprofEncoder, CollectingExporter>>;
};
// For threads that work until they have been sampled.
template <class AnyUnwinder = DefaultTraits::Unwinder>
struct CountedTraits : CollectingTraits {
  using Platform = CountingPlatform;
  using Unwinder = CountingUnwinder<AnyUnwinder>;
};

// Calls work() and ends a period, until a row has been exported that accepts(profile, row).
template <class Traits, class Accepts, class Work>
bool WorkUntilExported(BasicProfiler<Traits>& profiler, const Accepts& accepts, const Work& work) {
  return WorkUntil([&] { return CollectingExporter::HasRow(accepts); },
                   [&] {
                     work();
                     EXPECT_TRUE(profiler.Flush().ok());
                   });
}

inline std::int64_t MonotonicNs() {
  return std::chrono::nanoseconds(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// Adds up one value type over all rows that `accepts(profile, sample)`.
template <class Accepts>
std::int64_t SumIf(const std::vector<CollectingExporter::Exported>& exports, std::string_view type,
                   Accepts&& accepts) {
  std::int64_t sum = 0;
  for (const auto& [profile, bytes] : exports) {
    const int column = ColumnOf(profile, type);
    for (std::size_t i = 0; column >= 0 && i < profile.samples.size(); ++i) {
      if (accepts(profile, profile.samples[i]))
        sum += profile.Values(i)[static_cast<std::size_t>(column)];
    }
  }
  return sum;
}

inline std::int64_t SumOfThread(const std::vector<CollectingExporter::Exported>& exports,
                                std::string_view type, std::string_view thread) {
  return SumIf(exports, type, [&](const Profile& profile, const ProfileSample& sample) {
    return profile.label_sets[sample.labels].Text(kThreadNameLabel) == thread;
  });
}

// Calls visit(frame) for each frame of a stack, leaf first.
template <class Visitor>
void VisitFrames(const Profile& profile, const ProfileSample& sample, Visitor&& visit) {
  for (std::uint32_t node = sample.stack; node != 0; node = profile.stacks[node].parent)
    visit(profile.frames[profile.stacks[node].frame]);
}

inline bool HasPseudoFrame(const Profile& profile, const ProfileSample& sample,
                           PseudoFrame pseudo) {
  bool found = false;
  VisitFrames(profile, sample, [&](const Frame& frame) {
    found |= frame.is_pseudo() && frame.address == static_cast<Address>(pseudo);
  });
  return found;
}

// What a profile must say of a span: more than `least`, measured within it, and less than `most`,
// measured around it.
struct Span {
  std::int64_t least = 0;
  std::int64_t most = 0;
};

// That the amount of a thread, over all periods, lies in its span.
inline void ExpectWithin(const std::vector<CollectingExporter::Exported>& exports, const char* type,
                         const std::string& thread, const Span& span) {
  const std::int64_t sum = SumOfThread(exports, type, thread);
  EXPECT_GE(sum, span.least) << type << " of " << thread;
  EXPECT_LE(sum, span.most) << type << " of " << thread;
}

// The spans of a thread's CPU time and wall time.
struct Brackets {
  Span cpu;
  Span wall;
};

// Runs `body` registered as `name`, and says what its profile must add up to.
template <class Traits, class Body>
Brackets RunBracketed(BasicProfiler<Traits>& profiler, const std::string& name, Body&& body) {
  Brackets brackets;
  const std::int64_t outer_wall = MonotonicNs();
  const std::int64_t outer_cpu = ThreadCpuNs();
  {
    const Registration registration = profiler.RegisterThread(name);
    EXPECT_TRUE(registration.status().ok()) << registration.status();
    const std::int64_t inner_cpu = ThreadCpuNs();
    const std::int64_t inner_wall = MonotonicNs();
    body();
    brackets.wall.least = MonotonicNs() - inner_wall;
    brackets.cpu.least = ThreadCpuNs() - inner_cpu;
  }
  brackets.cpu.most = ThreadCpuNs() - outer_cpu;
  brackets.wall.most = MonotonicNs() - outer_wall;
  return brackets;
}

}  // namespace strobe::testing

// Compiled once, in collecting_profilers.cc.
namespace strobe {
extern template std::unique_ptr<const internal::CoreFactory>
internal::MakeCoreFactory<testing::CollectingTraits>();
extern template std::unique_ptr<const internal::CoreFactory>
internal::MakeCoreFactory<testing::CountedTraits<>>();
}  // namespace strobe
