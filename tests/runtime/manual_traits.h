// What the tests of the runtime share: the real parts but for the operating system and the clock,
// which are the test's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "strobe/aggregate/aggregated_period.h"
#include "strobe/core/profile.h"
#include "strobe/provider/cpu_time_provider.h"
#include "strobe/provider/off_cpu_time_provider.h"
#include "strobe/provider/wall_time_provider.h"
#include "strobe/ring/spsc_ring.h"
#include "strobe/runtime/control/core_factory.h"
#include "strobe/runtime/drain/recording_columns.h"
#include "strobe/testing/fakes/archetypes.h"
#include "strobe/testing/fakes/manual_clock.h"
#include "strobe/testing/fakes/manual_platform.h"
#include "strobe/testing/profile_check.h"

namespace strobe::testing {

inline constexpr std::int64_t kMs = 1'000'000;  // in nanoseconds
// The columns of a profile of ManualTraits.
inline constexpr std::size_t kSamples = 0;
inline constexpr std::size_t kCpu = 1;
inline constexpr std::size_t kWall = 2;

// Keeps what is exported, and fails when it is told to.
class ManualExporter {
 public:
  explicit ManualExporter(const ExporterOptions& /*options*/) {}
  absl::StatusOr<std::string> Export(const ExportRequest& request) {
    const std::lock_guard lock(mutex_);
    if (failures_ > 0) {
      --failures_;
      return failure_;
    }
    profiles_.push_back(request.profile);
    return std::string("kept");
  }
  static std::vector<Profile> Take() {
    const std::lock_guard lock(mutex_);
    return std::exchange(profiles_, {});
  }
  static void FailNext(
      int times, absl::Status failure = absl::UnavailableError("the exporter was told to fail")) {
    const std::lock_guard lock(mutex_);
    failures_ = times;
    failure_ = std::move(failure);
  }

 private:
  static inline std::mutex mutex_;
  static inline std::vector<Profile> profiles_;
  static inline int failures_ = 0;
  static inline absl::Status failure_;
};

struct ManualTraits : ArchetypeTraits {
  using Clock = ManualClock;
  using Ring = SpscRing;
  using Platform = ManualPlatform;
  using Providers = ProviderList<CpuTimeProvider, WallTimeProvider, OffCpuTimeProvider>;
  using Outputs = OutputList<Output<ArchetypeEncoder, ManualExporter>>;
};

// Ends the session; what it has sampled since its last period, checked.
template <class Session>
Profile FinishSession(Session& session) {
  session.End();
  session.FinishAll();
  Profile profile;
  profile.value_types =
      internal::ValueTypesOf(session.columns(), ManualTraits::Providers::AllValueTypes());
  FillProfile(session.TakePeriod().samples, profile);
  EXPECT_EQ(CheckProfile(profile), "");
  return profile;
}

// Each thread's sum of one column, by the thread's name.
inline std::map<std::string, std::int64_t> SumByThread(const Profile& profile, std::size_t column) {
  std::map<std::string, std::int64_t> sums;
  for (std::size_t i = 0; i < profile.samples.size(); ++i) {
    sums[profile.Labels(i).Text(kThreadNameLabel)] += profile.Values(i)[column];
  }
  return sums;
}
// One column's sum over the stacks whose leaf is that address.
inline std::int64_t SumOfLeaf(const Profile& profile, Address address, std::size_t column) {
  std::int64_t sum = 0;
  for (std::size_t i = 0; i < profile.samples.size(); ++i) {
    const Frame& leaf = profile.frames[profile.stacks[profile.samples[i].stack].frame];
    if (!leaf.is_pseudo() && leaf.address == address) sum += profile.Values(i)[column];
  }
  return sum;
}
// One column's sum over the stacks whose leaf is `frame`.
inline std::int64_t SumOfPseudo(const Profile& profile, PseudoFrame frame, std::size_t column) {
  std::int64_t sum = 0;
  for (std::size_t i = 0; i < profile.samples.size(); ++i) {
    const Frame& leaf = profile.frames[profile.stacks[profile.samples[i].stack].frame];
    if (leaf.is_pseudo() && leaf.address == static_cast<Address>(frame))
      sum += profile.Values(i)[column];
  }
  return sum;
}

}  // namespace strobe::testing

// Compiled once, in manual_profiler.cc.
namespace strobe {
extern template std::unique_ptr<const internal::CoreFactory>
internal::MakeCoreFactory<testing::ManualTraits>();
}  // namespace strobe
