// What the integration tests share: a profiler whose profiles stay in memory, threads that use CPU
// time, and sums over profiles.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "counted_walks.h"
#include "measured_work.h"
#include "platform/test_system.h"
#include "strobe/base/sanitizers.h"
#include "strobe/own_parts.h"

namespace strobe::testing {

inline constexpr bool kIsThreadSanitizer = internal::kHasThreadSanitizer;
inline constexpr bool kIsSanitized =
    internal::kHasThreadSanitizer || internal::kHasAddressSanitizer;

// Under Wine, which copies stacks as Windows does, it takes as long as under a sanitizer to begin
// threads and sessions by the thousand.
inline constexpr bool kIsSlow = kIsSanitized || NativePlatform::kCopiesStacks;

// A profile as it reached the encoder, with its names.
struct KeptProfile {
  Profile profile;
  Symbols symbols;
};

// All that the profilers of this process have exported since the last Take. Thread-safe.
class KeptProfiles {
 public:
  static void Add(KeptProfile kept) {
    const std::lock_guard lock(Mutex());
    Store().push_back(std::move(kept));
  }
  static std::vector<KeptProfile> Take() {
    const std::lock_guard lock(Mutex());
    return std::exchange(Store(), {});
  }
  // Whether accepts(kept) holds for any of them.
  template <class Accepts>
  static bool HasProfile(const Accepts& accepts) {
    const std::lock_guard lock(Mutex());
    return std::any_of(Store().begin(), Store().end(), accepts);
  }
  // Guards the store. For tests that fork: a child never finds it locked if it is held meanwhile.
  static std::mutex& Mutex() {
    static auto* const mutex = new std::mutex;
    return *mutex;
  }

 private:
  static std::vector<KeptProfile>& Store() {
    static auto* const store = new std::vector<KeptProfile>;
    return *store;
  }
};

class KeepingEncoder {
 public:
  static constexpr std::string_view kFileSuffix = ".kept";
  static constexpr std::string_view kContentType = "application/octet-stream";
  absl::StatusOr<std::string> Encode(const Profile& profile, const Symbols& symbols) {
    KeptProfiles::Add({profile, symbols});
    return std::string();
  }
};
static_assert(Encoder<KeepingEncoder>);

class NullExporter {
 public:
  static constexpr bool kBringsNoFiles = true;
  explicit NullExporter(const ExporterOptions& /*options*/) {}
  absl::StatusOr<std::string> Export(const ExportRequest& /*request*/) {
    return std::string("memory");
  }
};
static_assert(Exporter<NullExporter>);

class NullSymbolizer {
 public:
  static constexpr bool kBringsNoFiles = true;
  absl::StatusOr<Symbols> Symbolize(const Profile& /*profile*/) { return Symbols(); }
};
static_assert(Symbolizer<NullSymbolizer>);

// Everything real but the way out.
struct NamedKeepingTraits : DefaultTraits {
  using Platform = CountingPlatform;
  using Unwinder = CountingUnwinder<DefaultTraits::Unwinder>;
  using Outputs = OutputList<Output<KeepingEncoder, NullExporter>>;
};
struct KeepingTraits : NamedKeepingTraits {
  using Symbolizer = NullSymbolizer;
};
struct CpuOnlyTraits : KeepingTraits {
  using Providers = ProviderList<CpuTimeProvider>;
};
using KeepingProfiler = BasicProfiler<KeepingTraits>;

// What the profile must say of a thread lies between two readings of its CPU clock: one pair inside
// of what is measured, one around it.
struct CpuBounds {
  std::int64_t low_ns = 0;
  std::int64_t high_ns = 0;
  CpuBounds& operator+=(const CpuBounds& other) {
    low_ns += other.low_ns;
    high_ns += other.high_ns;
    return *this;
  }
};

// Uses at least that much CPU time, and more until the calling thread has been sampled meanwhile.
inline void BurnUntilSampled(std::int64_t cpu_ns) {
  const EnoughWalks is_sampled(1);
  BurnCpu(cpu_ns);
  while (!is_sampled) BurnCpu(1'000'000);
}

// Calls work() and ends a period, until a profile has been kept that accepts(kept).
template <class AnyProfiler, class Accepts, class Work>
bool WorkUntilKept(AnyProfiler& profiler, const Accepts& accepts, const Work& work) {
  return WorkUntil([&] { return KeptProfiles::HasProfile(accepts); },
                   [&] {
                     work();
                     static_cast<void>(profiler.Flush());
                   });
}

// The stacks of waiting threads that have been walked since a wait was last interrupted.
template <class AnyProfiler>
class UndisturbedWalks {
 public:
  explicit UndisturbedWalks(AnyProfiler& profiler) : profiler_(profiler) {}
  std::uint64_t Count() {
    const Stats now = profiler_.stats();
    if (now.waits_interrupted != since_.waits_interrupted) since_ = now;
    return now.waits_walked - since_.waits_walked;
  }

 private:
  AnyProfiler& profiler_;
  Stats since_ = profiler_.stats();
};

// Registers the calling thread, runs body() and ends the registration.
template <class AnyProfiler, class Body>
CpuBounds RunRegistered(AnyProfiler& profiler, std::string_view name, Body&& body) {
  const std::int64_t before_ns = ThreadCpuNs();
  std::int64_t begin_ns = 0;
  std::int64_t end_ns = 0;
  {
    const auto registration = profiler.RegisterThread(name);
    if (!registration.status().ok()) return {-1, -1};
    begin_ns = ThreadCpuNs();
    body();
    end_ns = ThreadCpuNs();
  }
  return {end_ns - begin_ns, ThreadCpuNs() - before_ns};
}

// The sum of a column for each thread's name, over profiles.
inline std::map<std::string, std::int64_t> SumByName(const std::vector<KeptProfile>& kept,
                                                     std::string_view type) {
  std::map<std::string, std::int64_t> sums;
  for (const KeptProfile& one : kept) {
    const int column = ColumnOf(one.profile, type);
    if (column < 0) continue;
    for (std::size_t i = 0; i < one.profile.samples.size(); ++i) {
      sums[one.profile.Labels(i).Text(kThreadNameLabel)] +=
          one.profile.Values(i)[static_cast<std::size_t>(column)];
    }
  }
  return sums;
}

// The frames of a sample, leaf first.
inline std::vector<Frame> FramesOf(const Profile& profile, const ProfileSample& sample) {
  std::vector<Frame> frames;
  for (std::uint32_t node = sample.stack; node != 0; node = profile.stacks[node].parent) {
    frames.push_back(profile.frames[profile.stacks[node].frame]);
  }
  return frames;
}

}  // namespace strobe::testing

// Compiled once, in keeping_profilers.cc.
namespace strobe {
extern template std::unique_ptr<const internal::CoreFactory>
internal::MakeCoreFactory<testing::NamedKeepingTraits>();
extern template std::unique_ptr<const internal::CoreFactory>
internal::MakeCoreFactory<testing::KeepingTraits>();
extern template std::unique_ptr<const internal::CoreFactory>
internal::MakeCoreFactory<testing::CpuOnlyTraits>();
}  // namespace strobe
