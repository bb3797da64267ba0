#include "strobe/aggregate/aggregator.h"

#include <gtest/gtest.h>

#include <array>
#include <map>
#include <memory>
#include <numeric>
#include <set>

#include "flat_profile.h"
#include "strobe/provider/sample_provider.h"

namespace strobe::testing {
namespace {

using Values = std::array<std::int64_t, 2>;

std::vector<std::int64_t> Sum(const Profile& profile, const std::string& thread) {
  std::vector<std::int64_t> sum(profile.value_types.size());
  for (std::size_t i = 0; i < profile.samples.size(); ++i) {
    if (profile.Labels(i).Text(kThreadNameLabel) != thread) continue;
    for (std::size_t j = 0; j < sum.size(); ++j) sum[j] += profile.Values(i)[j];
  }
  return sum;
}

TEST(Aggregator, AddsUpWhatIsEqualAndNothingElse) {
  Aggregator aggregator(2, kAmpleBytes);
  const std::uint32_t a = aggregator.AddThread(1, "a");
  const std::uint32_t b = aggregator.AddThread(2, "b");
  const std::array<Address, 3> stack = {0x33, 0x22, 0x11};
  aggregator.Add(a, {.leaf_first = stack}, Values{1, 10});
  aggregator.Add(b, {.leaf_first = stack}, Values{1, 100});
  aggregator.Add(a, {.leaf_first = stack}, Values{2, 20});
  aggregator.Add(a, {.leaf_first = std::span(stack).subspan(1)}, Values{1, 1});
  aggregator.Add(a, {.leaf_first = std::span(stack).first(2)}, Values{1, 2});
  aggregator.Add(a, {.leaf_first = stack}, Values{1, 5});
  EXPECT_EQ(Flatten(ToProfile(aggregator.Take())), (FlatProfile{{{"a", "11 22 33"}, {4, 35}},
                                                                {{"b", "11 22 33"}, {1, 100}},
                                                                {{"a", "11 22"}, {1, 1}},
                                                                {{"a", "22 33"}, {1, 2}}}));
  EXPECT_EQ(aggregator.overflows().stacks, 0u);
}

// What the values are shown without has no part in what the next stack shares, or is added to.
TEST(Aggregator, AStackCanBeShownWithoutItsLeaf) {
  Aggregator aggregator(1, kAmpleBytes);
  const std::uint32_t a = aggregator.AddThread(1, "a");
  const std::array<Address, 3> stack = {0x33, 0x22, 0x11};
  const auto add = [&](std::int64_t value, std::uint64_t skip, bool is_delta) {
    const StackDelta delta{.shared = is_delta ? std::size_t{3} : 0,
                           .leaf_first = std::span(stack).first(is_delta ? 0 : 3),
                           .skip = skip};
    EXPECT_TRUE(aggregator.Add(a, delta, std::array{value}));
  };
  add(1, 1, false);
  add(2, 0, true);
  add(4, 2, true);
  EXPECT_TRUE(aggregator.ExtendLast(a, std::array<std::int64_t, 1>{8}));
  add(16, 0, true);
  add(32, 9, true);
  add(64, 1, true);
  EXPECT_EQ(Flatten(ToProfile(aggregator.Take())),
            (FlatProfile{{{"a", "11 22 33"}, {26}}, {{"a", "11 22"}, {65}}, {{"a", "11"}, {36}}}));
  add(128, 1, true);
  EXPECT_EQ(Flatten(ToProfile(aggregator.Take())), (FlatProfile{{{"a", "11 22"}, {128}}}));
}

// A hook's frames are left out, also where a walk ended at one of them.
TEST(Aggregator, AStackOfWhichNothingIsLeftIsLost) {
  Aggregator aggregator(1, kAmpleBytes);
  const std::uint32_t a = aggregator.AddThread(1, "a");
  const std::array<Address, 2> stack = {0x22, 0x11};
  const auto add = [&](std::int64_t value, StackEnd end, std::uint64_t skip) {
    const StackDelta delta{.end = end, .leaf_first = stack, .skip = skip};
    EXPECT_TRUE(aggregator.Add(a, delta, std::array{value}));
  };
  add(1, StackEnd::kNoUnwindInfo, 2);
  add(2, StackEnd::kTruncated, 9);
  add(4, StackEnd::kComplete, 9);
  EXPECT_EQ(Flatten(ToProfile(aggregator.Take())),
            (FlatProfile{{{"a", "[lost]"}, {3}}, {{"a", "11"}, {4}}}));
}

// The labels of each row with their numbers: "a request 7" -> samples.
std::map<std::string, std::int64_t> SamplesByLabels(const Profile& profile) {
  std::map<std::string, std::int64_t> sums;
  for (std::size_t i = 0; i < profile.samples.size(); ++i) {
    const LabelSet& set = profile.Labels(i);
    sums[absl::StrCat(set.Text(kThreadNameLabel), set.Text("labels"), " ",
                      set.Number("request"))] += profile.Values(i)[0];
  }
  return sums;
}

TEST(Aggregator, OneStackUnderTwoContextsIsTwoRows) {
  LabelTable labels;
  const std::uint64_t seven = labels.Intern({{"request", std::int64_t{7}}});
  const std::uint64_t eight = labels.Intern({{"request", std::int64_t{8}}});
  Aggregator aggregator(1, kAmpleBytes);
  const std::uint32_t a = aggregator.AddThread(1, "a");
  const std::array<Address, 2> stack = {0x22, 0x11};
  const auto add = [&](std::int64_t value, std::uint64_t context, bool is_delta) {
    const StackDelta delta{.shared = is_delta ? std::size_t{2} : 0,
                           .leaf_first = std::span(stack).first(is_delta ? 0 : 2)};
    EXPECT_TRUE(aggregator.Add(a, delta, std::array{value}, context));
  };
  add(1, kNoContext, false);
  add(2, seven, true);  // the same stack to the walk, which knows nothing of contexts
  add(4, seven, true);
  add(8, eight, true);
  add(16, kNoContext, true);
  add(32, seven, false);
  EXPECT_FALSE(aggregator.ExtendLast(a, std::array<std::int64_t, 1>{64}, eight));
  EXPECT_TRUE(aggregator.ExtendLast(a, std::array<std::int64_t, 1>{128}, seven));
  const Profile profile = ToProfile(aggregator.Take(labels));
  EXPECT_EQ(SamplesByLabels(profile),
            (std::map<std::string, std::int64_t>{{"a 0", 17}, {"a 7", 166}, {"a 8", 8}}));
  EXPECT_EQ(profile.samples.size(), 3u);
  EXPECT_EQ(profile.threads.size(), 1u);

  // The last stack keeps its context in the next period.
  EXPECT_TRUE(aggregator.ExtendLast(a, std::array<std::int64_t, 1>{3}, seven));
  EXPECT_EQ(SamplesByLabels(ToProfile(aggregator.Take(labels))),
            (std::map<std::string, std::int64_t>{{"a 7", 3}}));
}

TEST(Aggregator, ContextsBeyondTheMemoryLimitShareOneRowOfTheThread) {
  LabelTable labels(std::size_t{64} << 20);
  Aggregator aggregator(1, std::size_t{1} << 20);
  const std::uint32_t a = aggregator.AddThread(1, "a");
  const std::array<Address, 1> stack = {0x11};
  constexpr std::int64_t kContexts = 100'000;
  for (std::int64_t i = 0; i < kContexts; ++i) {
    const std::uint64_t context = labels.Intern({{"request", i + 1}});
    aggregator.Add(a, {.leaf_first = stack}, std::array<std::int64_t, 1>{1}, context);
  }
  EXPECT_LE(aggregator.memory_bytes(), (std::size_t{1} << 20) + (std::size_t{64} << 10));
  const auto overflowed = static_cast<std::int64_t>(aggregator.overflows().labels);
  const Profile profile = ToProfile(aggregator.Take(labels));
  EXPECT_EQ(SamplesByLabels(profile).at("a[labels over limit] 0"), overflowed);
  EXPECT_GT(profile.samples.size(), 1000u);
  EXPECT_LT(profile.samples.size(), std::size_t{kContexts});
  EXPECT_EQ(Sum(profile, "a"), (std::vector<std::int64_t>{kContexts}));
}

TEST(Aggregator, AMillionTracesKeepToTheMemoryLimitAndLoseNothing) {
  constexpr std::size_t kLimitBytes = std::size_t{16} << 20;
  constexpr std::uint64_t kTraces = 1'000'000;
  Aggregator aggregator(1, kLimitBytes);
  const std::uint32_t a = aggregator.AddThread(1, "a");
  const std::array<Address, 2> stack = {0x22, 0x11};
  for (std::uint64_t i = 1; i <= kTraces; ++i) {
    aggregator.Add(
        a, {.leaf_first = stack}, std::array<std::int64_t, 1>{1},
        SampleContext(kNoContext, {.trace_id = i, .span_id = i, .local_root_span_id = i}));
  }
  EXPECT_LE(aggregator.memory_bytes(), kLimitBytes);
  EXPECT_EQ(aggregator.overflows().stacks, 0u) << "stacks have room left";
  EXPECT_GT(aggregator.overflows().labels, 0u);
  const std::uint64_t kept = kTraces - aggregator.overflows().labels;
  EXPECT_GT(kept, 20'000u);
  const Profile profile = ToProfile(aggregator.Take());
  EXPECT_EQ(profile.samples.size(), kept + 1);
  EXPECT_EQ(Sum(profile, "a"), (std::vector<std::int64_t>{kTraces}));
  EXPECT_EQ(profile.Labels(5).Number(kSpanIdLabel), 6);
}

SampleContext InSpan(SpanNumber span, std::uint64_t labels = kNoContext) {
  return labels | std::uint64_t{span} << SampleContext::kSpanShift;
}

// The sum of the rows with, or without, the label of slow spans.
std::int64_t SumOfSpans(const Profile& profile, bool are_slow) {
  std::int64_t sum = 0;
  for (std::size_t i = 0; i < profile.samples.size(); ++i)
    sum += (profile.Labels(i).Text(kSlowLabel) == "true") == are_slow ? profile.Values(i)[0] : 0;
  return sum;
}

TEST(Aggregator, RowsOfSlowSpansHaveALabelAndThoseOfOthersAreOne) {
  LabelTable labels;
  const auto slow_spans = std::make_unique<SlowSpans>();
  Aggregator aggregator(1, kAmpleBytes);
  const std::uint32_t a = aggregator.AddThread(1, "a");
  const std::array<Address, 1> stack = {0x11};
  const std::uint64_t pay = labels.Intern({{"endpoint", "/pay"}});
  const auto add = [&](std::int64_t value, const SampleContext& context) {
    EXPECT_TRUE(aggregator.Add(a, {.leaf_first = stack}, std::array{value}, context));
  };
  add(1, {});
  add(2, InSpan(1));
  add(4, InSpan(2));
  add(8, InSpan(3));
  add(16, InSpan(3, pay));
  add(32, InSpan(2, pay));
  EXPECT_TRUE(aggregator.ExtendLast(a, std::array<std::int64_t, 1>{64}, InSpan(2, pay)));
  EXPECT_FALSE(aggregator.ExtendLast(a, std::array<std::int64_t, 1>{1}, InSpan(4, pay)));
  slow_spans->Add(3);
  slow_spans->Add(99);
  const Profile profile = ToProfile(aggregator.Take(labels, *slow_spans));
  EXPECT_EQ(profile.samples.size(), 4U) << "with and without /pay, slow and not";
  EXPECT_EQ(SumOfSpans(profile, true), 8 + 16);
  EXPECT_EQ(SumOfSpans(profile, false), 1 + 2 + 4 + 32 + 64);
  EXPECT_EQ(aggregator.overflows(), Overflows());
}

TEST(Aggregator, SpansBeyondTheMemoryLimitAreNotSlowAndLoseNothing) {
  const auto slow_spans = std::make_unique<SlowSpans>();
  Aggregator aggregator(1, std::size_t{1} << 20);
  const std::uint32_t a = aggregator.AddThread(1, "a");
  const std::array<Address, 1> stack = {0x11};
  constexpr SpanNumber kSpans = 50'000;
  for (SpanNumber span = 1; span <= kSpans; ++span) {
    slow_spans->Add(span);
    aggregator.Add(a, {.leaf_first = stack}, std::array<std::int64_t, 1>{1}, InSpan(span));
  }
  const Profile profile = ToProfile(aggregator.Take(ProcessLabels(), *slow_spans));
  const auto beyond = static_cast<std::int64_t>(aggregator.overflows().spans);
  EXPECT_GT(beyond, 0);
  EXPECT_LT(beyond, kSpans - 1000);
  EXPECT_EQ(aggregator.overflows(), (Overflows{.spans = aggregator.overflows().spans}));
  EXPECT_EQ(SumOfSpans(profile, true), kSpans - beyond);
  EXPECT_EQ(SumOfSpans(profile, false), beyond);
}

TEST(Aggregator, SlowSpansThatAreForgottenAreCounted) {
  const auto slow_spans = std::make_unique<SlowSpans>();
  Aggregator aggregator(1, kAmpleBytes);
  const std::uint32_t a = aggregator.AddThread(1, "a");
  const std::array<Address, 1> stack = {0x11};
  const auto add = [&](SpanNumber span) {
    aggregator.Add(a, {.leaf_first = stack}, std::array<std::int64_t, 1>{1}, InSpan(span));
  };
  // What follows is counted from here: the aggregator has begun with the spans of the process.
  aggregator.Take(ProcessLabels(), *slow_spans);
  add(1);
  add(20);
  for (SpanNumber span = 1; span <= SlowSpans::kMaxSpans + 10; ++span) slow_spans->Add(span);
  EXPECT_EQ(SumOfSpans(ToProfile(aggregator.Take(ProcessLabels(), *slow_spans)), true), 1);
  EXPECT_EQ(aggregator.overflows().spans, 10U);
  add(20);
  EXPECT_EQ(SumOfSpans(ToProfile(aggregator.Take(ProcessLabels(), *slow_spans)), true), 1);
  EXPECT_EQ(aggregator.overflows().spans, 10U) << "none in this period";
}

TEST(Aggregator, ThreadsWithEqualLabelsShareRowsAndTheirAccount) {
  Aggregator aggregator(1, kAmpleBytes);
  const std::array<Address, 1> stack = {0x11};
  const std::uint32_t first = aggregator.AddThread(1, "a");
  aggregator.Add(first, {.leaf_first = stack}, std::array<std::int64_t, 1>{5});
  aggregator.RemoveThread(first);
  const std::uint32_t second = aggregator.AddThread(1, "a");
  aggregator.Add(second, {.leaf_first = stack}, std::array<std::int64_t, 1>{2});
  aggregator.AddPseudo(second, PseudoFrame::kResidual, std::array<std::int64_t, 1>{-3});
  const Profile profile = ToProfile(aggregator.Take());
  EXPECT_EQ(Flatten(profile), (FlatProfile{{{"a", "11"}, {4}}}));
  EXPECT_EQ(profile.threads.size(), 2u) << "there were two lives";
  EXPECT_EQ(profile.stats.sums_cut, 0u);
}

// Everything at once against a map: random walks of several threads over several generations,
// extensions, pseudo-frames, threads that come and go, periods that end in the middle.
TEST(Aggregator, AgreesWithAMap) {
  RandomSource random(42);
  const auto below = [&](std::size_t limit) {
    return static_cast<std::size_t>(random.Uniform() * static_cast<double>(limit));
  };
  Aggregator aggregator(2, kAmpleBytes);
  struct Live {
    std::uint32_t key;
    std::string name;
    std::vector<Address> stack;
    std::string last;
  };
  std::vector<Live> threads;
  FlatProfile model;
  int names = 0;
  const auto credit = [&](const std::string& name, const std::string& stack, const Values& values) {
    auto& sum = model[{name, stack}];
    sum.resize(2);
    for (std::size_t i = 0; i < 2; ++i) sum[i] += values[i];
  };
  for (int step = 0; step < 60000; ++step) {
    const std::size_t action = below(1000);
    if (threads.empty() || (action < 10 && threads.size() < 20)) {
      threads.push_back({aggregator.AddThread(step, absl::StrCat("thread", names)),
                         absl::StrCat("thread", names),
                         {},
                         ""});
      ++names;
    } else if (action < 15) {
      const std::size_t which = below(threads.size());
      aggregator.RemoveThread(threads[which].key);
      threads.erase(threads.begin() + static_cast<std::ptrdiff_t>(which));
    } else if (action < 18) {
      std::erase_if(model, [](const auto& entry) {
        return entry.second == std::vector<std::int64_t>{0, 0};
      });
      ASSERT_EQ(Flatten(ToProfile(aggregator.Take())), model) << "at step " << step;
      model.clear();
    } else {
      Live& thread = threads[below(threads.size())];
      const Values values = {static_cast<std::int64_t>(below(5)),
                             static_cast<std::int64_t>(below(1000))};
      if (action < 200) {
        ASSERT_EQ(aggregator.ExtendLast(thread.key, values), !thread.last.empty());
        if (!thread.last.empty()) credit(thread.name, thread.last, values);
      } else if (action < 250) {
        aggregator.AddPseudo(thread.key, PseudoFrame::kLost, values);
        credit(thread.name, "[lost]", values);
      } else {
        // Keep some root frames, replace the rest. The stack is root first here.
        thread.stack.resize(below(thread.stack.size() + 1));
        const std::size_t shared = below(3) == 0 ? 0 : thread.stack.size();
        for (std::size_t more = below(action < 300 ? 60 : 6) + (thread.stack.empty() ? 1 : 0);
             more > 0; --more) {
          thread.stack.push_back(1 + below(5));
        }
        const auto end = static_cast<StackEnd>(action % 20 == 0 ? 1 + below(3) : 0);
        thread.last = end == StackEnd::kComplete    ? ""
                      : end == StackEnd::kTruncated ? "[truncated]"
                      : end == StackEnd::kBroken    ? "[broken stack]"
                                                    : "[no unwind info]";
        for (const Address address : thread.stack)
          absl::StrAppend(&thread.last, thread.last.empty() ? "" : " ", absl::Hex(address));
        const std::vector<Address> fresh(thread.stack.rbegin(),
                                         thread.stack.rend() - static_cast<std::ptrdiff_t>(shared));
        const auto generation = static_cast<std::uint32_t>(step / 5000);
        ASSERT_TRUE(aggregator.Add(
            thread.key,
            {.generation = generation, .end = end, .shared = shared, .leaf_first = fresh}, values));
        credit(thread.name, thread.last, values);
      }
    }
  }
  EXPECT_EQ(aggregator.overflows().stacks, 0u);
}

TEST(Aggregator, ExtendsTheLastStackOfAnEarlierPeriod) {
  Aggregator aggregator(2, kAmpleBytes);
  const std::uint32_t thread = aggregator.AddThread(1, "t");
  EXPECT_FALSE(aggregator.ExtendLast(thread, Values{1, 1})) << "no stack yet";
  aggregator.AddPseudo(thread, PseudoFrame::kLost, Values{1, 0});
  EXPECT_FALSE(aggregator.ExtendLast(thread, Values{1, 1})) << "a pseudo-frame is no last stack";
  aggregator.SetModules(1, ModuleMap({MakeModule(0x1000, "main"), MakeModule(0x3000, "gone")}));
  aggregator.Add(thread,
                 {.generation = 1,
                  .end = StackEnd::kTruncated,
                  .leaf_first = std::array<Address, 2>{0x1022, 0x1011}},
                 Values{1, 10});
  aggregator.SetModules(2, ModuleMap({MakeModule(0x1000, "main")}));
  aggregator.Take();
  for (int period = 0; period < 3; ++period) {
    EXPECT_TRUE(aggregator.ExtendLast(thread, Values{0, 7}));
    EXPECT_TRUE(aggregator.ExtendLast(thread, Values{0, 1}));
    EXPECT_EQ(Flatten(ToProfile(aggregator.Take())),
              (FlatProfile{{{"t", "[truncated] main:1011 main:1022"}, {0, 8}}}));
  }
  EXPECT_TRUE(Flatten(ToProfile(aggregator.Take())).empty());
  aggregator.RemoveThread(thread);
  const std::uint32_t next = aggregator.AddThread(2, "next");
  EXPECT_FALSE(aggregator.ExtendLast(next, Values{1, 1})) << "a key that is used again has no past";
}

TEST(Aggregator, KeysAreNotReusedWhileTheirRowsArePending) {
  Aggregator aggregator(2, kAmpleBytes);
  const std::uint32_t first = aggregator.AddThread(1, "first");
  aggregator.AddPseudo(first, PseudoFrame::kResidual, Values{1, 5});
  aggregator.RemoveThread(first);
  const std::uint32_t second = aggregator.AddThread(2, "second");
  EXPECT_NE(first, second);
  aggregator.AddPseudo(second, PseudoFrame::kResidual, Values{1, 6});
  EXPECT_EQ(Flatten(ToProfile(aggregator.Take())),
            (FlatProfile{{{"first", "[residual]"}, {1, 5}}, {{"second", "[residual]"}, {1, 6}}}));
  EXPECT_EQ(aggregator.AddThread(3, "third"), first);
  aggregator.AddPseudo(second, PseudoFrame::kResidual, Values{1, 7});
  EXPECT_EQ(Flatten(ToProfile(aggregator.Take())),
            (FlatProfile{{{"second", "[residual]"}, {1, 7}}}));
}

// Distinct stacks without end under limits of all sizes: the bound holds at every step and not a
// value is lost.
TEST(Aggregator, MemoryLimitHoldsAndValuesStay) {
  constexpr std::size_t kAlwaysKept = 64 * 1024;
  for (const std::size_t limit : {std::size_t{0}, std::size_t{1000}, std::size_t{100000},
                                  std::size_t{1} << 20, std::size_t{4} << 20}) {
    Aggregator aggregator(2, limit);
    std::vector<std::uint32_t> threads;
    for (int i = 0; i < 8; ++i) threads.push_back(aggregator.AddThread(i, absl::StrCat("t", i)));
    RandomSource random(limit);
    for (int period = 0; period < 2; ++period) {
      const std::uint64_t overflowed_before = aggregator.overflows().stacks;
      std::size_t highest = 0;
      for (int sample = 0; sample < 40000; ++sample) {
        std::array<Address, 20> stack;
        for (Address& address : stack) address = static_cast<Address>(random.Uniform() * 0x1p40);
        std::fill(stack.begin() + 12, stack.end(), 5);
        aggregator.Add(threads[sample % 8], {.leaf_first = std::span(stack).subspan(sample % 3)},
                       Values{1, sample});
        if (sample % 16 < 8) {
          EXPECT_TRUE(aggregator.ExtendLast(threads[sample % 8], Values{1, 1}));
        }
        highest = std::max(highest, aggregator.memory_bytes());
      }
      EXPECT_LE(highest, limit + kAlwaysKept);
      if (limit >= 1 << 20) {
        EXPECT_GE(highest, limit * 8 / 10) << "the limit is there to be used";
      }
      EXPECT_GT(aggregator.overflows().stacks, overflowed_before);
      AggregatedPeriod taken = aggregator.Take();
      EXPECT_LE(aggregator.memory_bytes(), kAlwaysKept) << "a new period starts afresh";
      const Profile profile = ToProfile(std::move(taken));
      for (int i = 0; i < 8; ++i) {
        std::int64_t expected = 0;
        for (int sample = i; sample < 40000; sample += 8)
          expected += sample + (sample % 16 < 8 ? 1 : 0);
        EXPECT_EQ(Sum(profile, absl::StrCat("t", i)), (std::vector<std::int64_t>{7500, expected}));
      }
      const FlatProfile flat = Flatten(profile);
      EXPECT_EQ(std::count_if(flat.begin(), flat.end(),
                              [](const auto& row) { return row.first.second == "[overflow]"; }),
                8)
          << "one row a thread";
    }
  }
}

TEST(Aggregator, MomentsBeyondTheirShareAreCountedAndTheirValuesStay) {
  constexpr std::size_t kLimitBytes = std::size_t{1} << 20;
  constexpr std::int64_t kSamples = 20000;
  Aggregator aggregator(2, kLimitBytes);
  const std::uint32_t thread = aggregator.AddThread(1, "t");
  const std::array<Address, 2> stack = {0x22, 0x11};
  std::uint64_t dropped_before = 0;
  for (int period = 0; period < 2; ++period) {
    for (std::int64_t i = 0; i < kSamples; ++i) {
      aggregator.Add(thread, {.leaf_first = stack}, Values{1, i}, {}, 1 + i);
      aggregator.Add(thread, {.leaf_first = stack}, Values{0, 0}, {}, 1 + i);  // no sample of ours
    }
    EXPECT_LE(aggregator.memory_bytes(), kLimitBytes);
    const Profile profile = ToProfile(aggregator.Take());
    EXPECT_EQ(profile.values, (std::vector<std::int64_t>{kSamples, kSamples * (kSamples - 1) / 2}));
    EXPECT_LE(profile.moments.size(), kLimitBytes / MomentTable::kShareOfLimit / 32);
    EXPECT_GT(profile.moments.size(), kLimitBytes / MomentTable::kShareOfLimit / 40);
    EXPECT_EQ(aggregator.overflows().moments - dropped_before, kSamples - profile.moments.size());
    dropped_before = aggregator.overflows().moments;
  }
  EXPECT_EQ(aggregator.overflows().stacks, 0u);
}

TEST(Aggregator, AThreadWithALifeIsListedWithoutRows) {
  Aggregator aggregator(1, kAmpleBytes);
  const std::uint32_t idle = aggregator.AddThread(1, "idle");
  const std::uint32_t busy = aggregator.AddThread(2, "busy");
  const std::uint32_t ended = aggregator.AddThread(3, "ended");
  EXPECT_TRUE(aggregator.AddLife(idle, {.begin_ns = -7, .cpu_ns = 0}));
  const std::array<Address, 1> stack = {0x11};
  aggregator.Add(busy, {.leaf_first = stack}, std::array<std::int64_t, 1>{5});
  EXPECT_TRUE(aggregator.AddLife(busy, {.begin_ns = 10, .cpu_ns = 4, .samples = 1}));
  EXPECT_TRUE(aggregator.AddLife(busy, {.begin_ns = 10, .end_ns = 30, .cpu_ns = 1}));
  aggregator.RemoveThread(busy);
  EXPECT_TRUE(aggregator.AddLife(ended, {.begin_ns = 20, .end_ns = 25}));
  aggregator.RemoveThread(ended);
  EXPECT_NE(aggregator.AddThread(4, "other"), ended) << "the key is still in use";
  AggregatedPeriod period = aggregator.Take();
  period.unix_offset_ns = 1000;
  const std::vector<ProfileThread> threads = ToProfile(std::move(period)).threads;
  ASSERT_EQ(threads.size(), 4u);
  EXPECT_EQ(threads[0].name, "idle");
  EXPECT_EQ(threads[0].begin_ns, 993);
  EXPECT_EQ(threads[0].end_ns, 0);
  EXPECT_EQ(threads[0].cpu_ns, 0);
  EXPECT_EQ(threads[1].begin_ns, 1010);
  EXPECT_EQ(threads[1].end_ns, 1030);
  EXPECT_EQ(threads[1].cpu_ns, 5);
  EXPECT_EQ(threads[1].samples, 1u);
  EXPECT_EQ(threads[2].name, "ended");
  EXPECT_EQ(threads[2].end_ns, 1025);
  EXPECT_EQ(threads[2].cpu_ns, -1);
  EXPECT_EQ(threads[3].begin_ns, 0) << "nothing is known of it";
  EXPECT_EQ(threads[3].cpu_ns, -1);
  const std::vector<ProfileThread> later = ToProfile(aggregator.Take()).threads;
  ASSERT_EQ(later.size(), 2u) << "the living ones";
  EXPECT_EQ(later[0].begin_ns, 0) << "a period has lives of its own";
}

// Threads that are listed only for their lives take no sample's place.
TEST(Aggregator, LivesAreBoundedAndLeaveRoomForRows) {
  constexpr std::size_t kLimitBytes = std::size_t{256} << 20;
  Aggregator aggregator(1, kLimitBytes);
  const std::size_t empty_bytes = aggregator.memory_bytes();
  std::size_t listed = 0;
  for (std::size_t i = 0; i < 4 * Aggregator::kMaxEndedThreads; ++i) {
    const std::uint32_t key = aggregator.AddThread(i + 1, "t");
    listed += aggregator.AddLife(key, {.begin_ns = 1, .end_ns = 2}) ? 1 : 0;
    aggregator.RemoveThread(key);
  }
  EXPECT_GT(listed, Aggregator::kMaxEndedThreads);
  EXPECT_LT(listed, 4 * Aggregator::kMaxEndedThreads);
  EXPECT_LE(aggregator.memory_bytes(), kLimitBytes / 8);
  const std::uint32_t sampled = aggregator.AddThread(7, "sampled");
  const std::array<Address, 1> stack = {0x11};
  EXPECT_TRUE(aggregator.Add(sampled, {.leaf_first = stack}, std::array<std::int64_t, 1>{5}));
  aggregator.RemoveThread(sampled);
  const Profile profile = ToProfile(aggregator.Take());
  EXPECT_EQ(Flatten(profile), (FlatProfile{{{"sampled", "11"}, {5}}}));
  EXPECT_EQ(profile.threads.size(), listed + 1);
  EXPECT_EQ(aggregator.memory_bytes(), empty_bytes);
}

TEST(Aggregator, KnownStacksAreCountedEvenWhenMemoryIsFull) {
  Aggregator aggregator(2, 300000);
  const std::uint32_t thread = aggregator.AddThread(1, "t");
  const std::array<Address, 2> known = {0x22, 0x11};
  aggregator.Add(thread, {.leaf_first = known}, Values{1, 1});
  for (Address i = 0; i < 50000; ++i)
    aggregator.Add(thread, {.leaf_first = std::array<Address, 2>{i << 20, 0x11}}, Values{1, 0});
  const std::uint64_t overflowed = aggregator.overflows().stacks;
  EXPECT_GT(overflowed, 0u);
  aggregator.Add(thread, {.leaf_first = known}, Values{1, 1});
  EXPECT_EQ(aggregator.overflows().stacks, overflowed);
  const FlatProfile flat = Flatten(ToProfile(aggregator.Take()));
  EXPECT_EQ(flat.at({"t", "11 22"}), (std::vector<std::int64_t>{2, 2}));
  EXPECT_EQ(flat.at({"t", "[overflow]"}),
            (std::vector<std::int64_t>{static_cast<std::int64_t>(overflowed), 0}));
}

TEST(Aggregator, AStackThatSharesWhatIsNotKnownOverflows) {
  Aggregator aggregator(2, kAmpleBytes);
  const std::uint32_t thread = aggregator.AddThread(1, "t");
  const std::array<Address, 1> leaf = {0x44};
  EXPECT_FALSE(aggregator.Add(thread, {.shared = 2, .leaf_first = leaf}, Values{1, 1}))
      << "nothing was added before";
  EXPECT_TRUE(aggregator.Add(thread, {.leaf_first = std::array<Address, 3>{0x33, 0x22, 0x11}},
                             Values{1, 2}));
  EXPECT_FALSE(aggregator.Add(thread, {.shared = 4, .leaf_first = leaf}, Values{1, 3}))
      << "there are only three";
  EXPECT_TRUE(aggregator.Add(thread, {.shared = 2, .leaf_first = leaf}, Values{1, 4}));
  EXPECT_TRUE(aggregator.Add(thread, {.shared = 3, .leaf_first = {}}, Values{1, 5}));
  EXPECT_EQ(Flatten(ToProfile(aggregator.Take())), (FlatProfile{{{"t", "[overflow]"}, {2, 4}},
                                                                {{"t", "11 22 33"}, {1, 2}},
                                                                {{"t", "11 22 44"}, {2, 9}}}));
}

TEST(Aggregator, AThreadWhoseLastStackIsForgottenBeginsAnew) {
  Aggregator aggregator(2, kAmpleBytes);
  const std::uint32_t thread = aggregator.AddThread(1, "t");
  const std::array<Address, 2> stack = {0x22, 0x11};
  const std::array<Address, 1> leaf = {0x33};
  EXPECT_TRUE(aggregator.Add(thread, {.leaf_first = stack}, Values{1, 1}));
  aggregator.ForgetLast(thread);
  EXPECT_FALSE(aggregator.ExtendLast(thread, Values{1, 2}));
  aggregator.Take();
  EXPECT_FALSE(aggregator.Add(thread, {.shared = 1, .leaf_first = leaf}, Values{1, 3}));
  EXPECT_TRUE(aggregator.Add(thread, {.leaf_first = stack}, Values{1, 4}));
  EXPECT_TRUE(aggregator.Add(thread, {.shared = 1, .leaf_first = leaf}, Values{1, 5}));
  EXPECT_EQ(Flatten(ToProfile(aggregator.Take())), (FlatProfile{{{"t", "[overflow]"}, {1, 3}},
                                                                {{"t", "11 22"}, {1, 4}},
                                                                {{"t", "11 33"}, {1, 5}}}));
}

TEST(Aggregator, SharesAcrossPeriodsAndModules) {
  Aggregator aggregator(2, kAmpleBytes);
  const std::uint32_t thread = aggregator.AddThread(1, "t");
  aggregator.SetModules(1, ModuleMap({MakeModule(0x1000, "main"), MakeModule(0x3000, "gone")}));
  aggregator.Add(thread,
                 {.generation = 1, .leaf_first = std::array<Address, 3>{0x3033, 0x1022, 0x1011}},
                 Values{1, 1});
  aggregator.SetModules(2, ModuleMap({MakeModule(0x1000, "main"), MakeModule(0x3000, "new")}));
  const std::array<Address, 1> leaf = {0x3044};
  EXPECT_TRUE(
      aggregator.Add(thread, {.generation = 2, .shared = 2, .leaf_first = leaf}, Values{1, 2}));
  EXPECT_EQ(Flatten(ToProfile(aggregator.Take())),
            (FlatProfile{{{"t", "main:1011 main:1022 gone:3033"}, {1, 1}},
                         {{"t", "main:1011 main:1022 new:3044"}, {1, 2}}}));
  EXPECT_TRUE(
      aggregator.Add(thread, {.generation = 2, .shared = 3, .leaf_first = {}}, Values{1, 3}));
  EXPECT_TRUE(
      aggregator.Add(thread, {.generation = 2, .shared = 1, .leaf_first = leaf}, Values{1, 4}));
  EXPECT_EQ(Flatten(ToProfile(aggregator.Take())),
            (FlatProfile{{{"t", "main:1011 main:1022 new:3044"}, {1, 3}},
                         {{"t", "main:1011 new:3044"}, {1, 4}}}));
}

TEST(Aggregator, LoadsDoNotMultiplyStacks) {
  Aggregator aggregator(2, kAmpleBytes);
  const std::uint32_t thread = aggregator.AddThread(1, "t");
  std::vector<Module> modules = {MakeModule(0x1000, "main")};
  aggregator.SetModules(0, ModuleMap(modules));
  aggregator.Add(thread, {.leaf_first = std::array<Address, 1>{0x1010}}, Values{1, 1});
  const std::uint32_t nodes = 3;  // the trie's root, the stack's root, the frame
  for (std::uint32_t generation = 1; generation < 50; ++generation) {
    modules.push_back(MakeModule(0x10000 * generation, "plugin"));
    aggregator.SetModules(generation, ModuleMap(modules));
    aggregator.Add(thread, {.generation = generation, .leaf_first = std::array<Address, 1>{0x1010}},
                   Values{1, 1});
  }
  const AggregatedPeriod period = aggregator.Take();
  EXPECT_EQ(period.trie.size(), nodes);
  EXPECT_EQ(period.rows.value(0, 0), 50);
}

TEST(Aggregator, ThreadsThatComeAndGoCostNothingInTheEnd) {
  Aggregator aggregator(2, kAmpleBytes);
  std::set<std::uint32_t> keys;
  for (int i = 0; i < 100000; ++i) {
    const std::uint32_t key = aggregator.AddThread(i, "short");
    keys.insert(key);
    aggregator.RemoveThread(key);
  }
  EXPECT_EQ(keys.size(), 1u) << "without rows a key is free at once";
}

TEST(Aggregator, EndedThreadsOfAPeriodAreBounded) {
  constexpr std::size_t kThreads = Aggregator::kMaxEndedThreads + 1000;
  Aggregator aggregator(2, kAmpleBytes);
  std::set<std::uint32_t> keys;
  for (std::size_t i = 0; i < kThreads; ++i) {
    const std::uint32_t key = aggregator.AddThread(i + 1, "t");
    keys.insert(key);
    aggregator.Add(key, {.leaf_first = std::array<Address, 1>{0x1010}}, Values{1, 2});
    EXPECT_TRUE(aggregator.ExtendLast(key, Values{0, 1}));
    aggregator.RemoveThread(key);
  }
  EXPECT_EQ(keys.size(), Aggregator::kMaxEndedThreads + 1);
  const Profile profile = ToProfile(aggregator.Take());
  EXPECT_EQ(Sum(profile, "t")[1] + Sum(profile, "[overflow]")[1],
            static_cast<std::int64_t>(3 * kThreads));
  EXPECT_EQ(Sum(profile, "[overflow]")[0], 1000);
  EXPECT_NE(aggregator.AddThread(1, "after"), *keys.rbegin()) << "the shared key stays shared";
}

TEST(Aggregator, IdleThreadsAreSmall) {
  Aggregator aggregator(2, std::size_t{64} << 20);
  const std::size_t before = aggregator.memory_bytes();
  for (int i = 0; i < 10000; ++i) aggregator.AddThread(i, "idle");
  EXPECT_LE(aggregator.memory_bytes() - before, 10000 * 64u);
}

}  // namespace
}  // namespace strobe::testing
