#include "strobe/aggregate/joined_periods.h"

#include <array>
#include <cstdint>
#include <deque>
#include <map>
#include <random>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "strobe/testing/profile_check.h"

namespace strobe {
namespace {

using Row = std::vector<std::int64_t>;

constexpr std::size_t kJoinedBytes = std::size_t{8} << 20;

Module NamedModule(const std::string& path, Address start) {
  Module module;
  module.path = path;
  module.start = start;
  module.limit = start + 0x1000;
  return module;
}

// What a reader sees: labels, the module and the address of each frame, and the values.
std::map<std::string, Row> ContentOf(const Profile& profile) {
  std::map<std::string, Row> content;
  for (std::size_t i = 0; i < profile.samples.size(); ++i) {
    std::string text;
    for (const Label& label : profile.Labels(i).labels()) {
      text += label.key + "=";
      text += std::holds_alternative<std::string>(label.value)
                  ? std::get<std::string>(label.value)
                  : std::to_string(std::get<std::int64_t>(label.value));
      text += ",";
    }
    for (std::uint32_t node = profile.samples[i].stack; node != 0;
         node = profile.stacks[node].parent) {
      const Frame& frame = profile.frames[profile.stacks[node].frame];
      if (frame.module < profile.modules.size()) text += profile.modules[frame.module].path;
      text += "+" + std::to_string(frame.address) + ";";
    }
    content[text] = Row(profile.Values(i).begin(), profile.Values(i).end());
  }
  for (const ProfileThread& thread : profile.threads) {
    content["thread " + thread.name + std::to_string(thread.begin_ns)] = {
        thread.end_ns, thread.cpu_ns, static_cast<std::int64_t>(thread.samples)};
  }
  for (std::size_t i = 0; i < profile.moments.size(); ++i) {
    Row& moments = content["moments"];
    moments.push_back(profile.moments[i].time_ns);
    moments.insert(moments.end(), profile.MomentValues(i).begin(), profile.MomentValues(i).end());
  }
  return content;
}

Profile ProfileOf(RecordedPeriod period) {
  Profile profile;
  profile.value_types.resize(2);
  profile.time_ns = period.time_ns;
  profile.duration_ns = period.duration_ns;
  period.samples.pooled_below = {3, 5};
  FillProfile(std::move(period.samples), profile);
  EXPECT_EQ(testing::CheckProfile(profile), "");
  return profile;
}

// The same calls for a recording that is cut into periods, and for one that is not.
class Twins {
 public:
  explicit Twins(std::uint64_t seed) : random_(seed) { SetModules(); }

  void Step() {
    now_ns_ += 10 + Below(20);
    switch (Below(12)) {
      case 0: AddThread(); break;
      case 1: RemoveThread(); break;
      case 2: SetModules(); break;
      default: Sample();
    }
  }
  void Cut() { periods_.push_back(cut_.Take(ProcessLabels(), Now())); }
  Profile Joined() {
    Cut();
    std::vector<const RecordedPeriod*> periods;
    for (const RecordedPeriod& period : periods_) periods.push_back(&period);
    return ProfileOf(JoinPeriods(periods, kColumns, {}));
  }
  Profile Whole() { return ProfileOf(whole_.Take(ProcessLabels(), Now())); }

 private:
  static constexpr std::array<std::size_t, 2> kColumns{0, 1};

  std::int64_t Below(std::int64_t limit) {
    return static_cast<std::int64_t>(random_() % static_cast<std::uint64_t>(limit));
  }
  [[nodiscard]] Recording::Time Now() const { return {now_ns_, now_ns_ + 5000}; }
  template <class Body>
  void ForBoth(const Body& body) {
    body(cut_);
    body(whole_);
  }

  void SetModules() {
    ++generation_;
    std::vector<Module> modules = {NamedModule("program", 0x1000)};
    // What lies at 0x4000 is another module at times, or none.
    if (const std::int64_t plugin = Below(3); plugin != 0)
      modules.push_back(NamedModule("plugin" + std::to_string(plugin), 0x4000));
    const ModuleMap map(std::move(modules));
    ForBoth([&](Recording& recording) { recording.SetModules(generation_, map); });
  }
  void AddThread() {
    const auto thread = static_cast<std::uint32_t>(begins_.size());
    begins_.push_back(now_ns_);
    alive_.push_back(thread);
    ForBoth([&](Recording& recording) {
      recording.AddThread(thread, 1 + thread % 3, thread % 2 == 0 ? "even" : "odd");
    });
  }
  void RemoveThread() {
    if (alive_.empty()) return;
    const std::uint32_t thread = alive_.back();
    alive_.pop_back();
    const LifePart life{.begin_ns = begins_[thread], .end_ns = now_ns_, .cpu_ns = 2};
    ForBoth([&](Recording& recording) {
      recording.AddPseudo(thread, PseudoFrame::kResidual, Row{1, 4});
      recording.AddLife(thread, life);
      recording.RemoveThread(thread);
    });
  }
  void Sample() {
    if (alive_.empty()) return;
    const std::uint32_t thread =
        alive_[static_cast<std::size_t>(Below(static_cast<std::int64_t>(alive_.size())))];
    const std::vector<Address> stack = {Address(0x4010 + Below(3) * 0x10),
                                        Address(0x1010 + Below(3) * 0x10)};
    const SampleContext context(Below(2) == 0 ? kNoContext
                                              : ProcessLabels().Intern({{"request", Below(4)}}));
    const Row row = {1, 10 + Below(5)};
    const LifePart life{.begin_ns = begins_[thread], .cpu_ns = 7, .samples = 1};
    ForBoth([&](Recording& recording) {
      recording.Add(thread, {.generation = generation_, .leaf_first = stack}, row, context,
                    now_ns_);
      recording.AddPseudo(thread, PseudoFrame::kResidual, Row{0, -3});
      recording.AddLife(thread, life);
    });
  }

  std::mt19937_64 random_;
  std::int64_t now_ns_ = 100;
  Recording cut_{{0, 1}, kJoinedBytes, {100, 5100}};
  Recording whole_{{0, 1}, kJoinedBytes, {100, 5100}};
  std::uint32_t generation_ = 0;
  std::vector<std::int64_t> begins_;
  std::vector<std::uint32_t> alive_;
  std::deque<RecordedPeriod> periods_;
};

// The cuts change nothing: the joined periods are what one period would be.
TEST(JoinPeriods, PeriodsAreOneAsIfTheyHadNeverBeenCut) {
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    Twins twins(seed);
    for (std::uint64_t step = 1; step <= 300; ++step) {
      twins.Step();
      if (step % (10 + seed) == 0) twins.Cut();
    }
    const Profile joined = twins.Joined();
    const Profile whole = twins.Whole();
    EXPECT_EQ(joined.time_ns, whole.time_ns);
    EXPECT_EQ(joined.duration_ns, whole.duration_ns);
    EXPECT_FALSE(whole.samples.empty());
    ASSERT_EQ(ContentOf(joined), ContentOf(whole)) << seed;
  }
}

TEST(JoinPeriods, TakesTheColumnsThatAreWanted) {
  Recording recording({0, 1}, kJoinedBytes, {});
  recording.AddThread(0, 1, "thread");
  std::deque<RecordedPeriod> periods;
  for (const std::int64_t value : {1, 2}) {
    const std::vector<Address> stack = {0x22};
    recording.Add(0, {.leaf_first = stack}, Row{value, 10 * value}, kNoContext, 5);
    periods.push_back(recording.Take(ProcessLabels(), {}));
  }
  const std::vector<const RecordedPeriod*> both = {&periods[0], &periods[1]};
  const RecordedPeriod joined = JoinPeriods(both, std::vector<std::size_t>{1}, {});
  EXPECT_EQ(joined.samples.rows.value_count(), 1u);
  EXPECT_EQ(joined.samples.rows.Sum(0), 30);
  ASSERT_EQ(joined.samples.moments.size(), 2u);
  EXPECT_EQ(joined.samples.moments.value(1, 0), 20);
}

// A span that is over its threshold only later makes its earlier samples slow.
TEST(JoinPeriods, ASpanThatHasBecomeSlowLaterIsSlowInAll) {
  Recording recording({0}, kJoinedBytes, {});
  recording.AddThread(0, 1, "thread");
  const std::vector<Address> stack = {0x22};
  constexpr SpanNumber kSpan = 7;
  const SampleContext context(std::uint64_t{kSpan} << SampleContext::kSpanShift);
  recording.Add(0, {.leaf_first = stack}, Row{1}, context);
  const RecordedPeriod period = recording.Take(ProcessLabels(), {});
  const std::vector<const RecordedPeriod*> one = {&period};
  for (const bool is_slow : {false, true}) {
    const std::vector<SpanNumber> slow(is_slow ? 1 : 0, kSpan);
    Profile profile;
    profile.value_types.resize(1);
    FillProfile(JoinPeriods(one, std::vector<std::size_t>{0}, slow).samples, profile);
    ASSERT_EQ(profile.samples.size(), 1u);
    EXPECT_EQ(profile.Labels(0).Text(kSlowLabel), is_slow ? "true" : "");
  }
}

}  // namespace
}  // namespace strobe
