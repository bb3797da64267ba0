#include "strobe/core/sample_context.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

namespace strobe {
namespace {

constexpr TraceContext kTrace{.trace_id = 1, .span_id = 2, .local_root_span_id = 3};

TEST(ThreadContext, IsReadAsItWasSet) {
  ThreadContext context;
  EXPECT_TRUE(context.Read().empty());
  context.SetLabels(7);
  EXPECT_EQ(context.Read(), SampleContext(7));
  context.SetTrace(kTrace);
  EXPECT_EQ(context.Read(), SampleContext(7, kTrace));
  context.SetLabels(8);
  EXPECT_EQ(context.Read(), SampleContext(8, kTrace));
  context.SetTrace({});
  EXPECT_EQ(context.Read(), SampleContext(8));
  context.Clear();
  EXPECT_TRUE(context.Read().empty());
}

TEST(ThreadContext, ASpanIsBesideTheLabelsAndTheTrace) {
  ThreadContext context;
  context.SetLabels(7);
  context.BeginSpan(0xFFFFFFFF, 100);
  for (int change = 0; change < 100'000; ++change) context.SetTrace(kTrace);
  EXPECT_EQ(context.Read().span(), 0xFFFFFFFF);
  EXPECT_EQ(context.Read().labels(), 7U);
  EXPECT_EQ(context.Read().trace, kTrace);
  EXPECT_EQ(context.SlowSpan(100), 0U);
  EXPECT_EQ(context.SlowSpan(101), 0xFFFFFFFF);
  ThreadContext copy;
  copy.SetLabels(9);
  copy.CopyFrom(context);
  EXPECT_EQ(copy.Read(), context.Read());
  EXPECT_EQ(copy.SlowSpan(101), 0xFFFFFFFF);
  context.EndSpan();
  EXPECT_EQ(context.Read(), SampleContext(7, kTrace));
  EXPECT_EQ(context.SlowSpan(101), 0U);
  copy.Clear();
  EXPECT_TRUE(copy.Read().empty());
}

// As the sampler's thread reads it on Windows.
TEST(ThreadContext, AnotherThreadReadsNoMixtureOfTwoTraces) {
  ThreadContext context;
  std::atomic<bool> is_ended{false};
  std::thread writer([&] {
    for (std::uint64_t i = 1; !is_ended.load(std::memory_order_relaxed); ++i)
      context.SetTrace({.trace_id = i, .span_id = 2 * i, .local_root_span_id = 3 * i});
  });
  for (int seen = 0; seen < 10'000;) {
    const TraceContext trace = context.Read().trace;
    if (trace.empty()) continue;
    ++seen;
    ASSERT_EQ(trace.span_id, 2 * trace.trace_id);
    ASSERT_EQ(trace.local_root_span_id, 3 * trace.trace_id);
  }
  is_ended = true;
  writer.join();
}

TEST(TraceLabels, NameTheIdsThatAreNotZero) {
  EXPECT_TRUE(TraceLabels({}).empty());
  const LabelSet set = TraceLabels({.trace_id = ~std::uint64_t{0}, .span_id = 2});
  EXPECT_EQ(set.labels().size(), 2u);
  EXPECT_EQ(set.Number(kTraceIdLabel), -1);
  EXPECT_EQ(set.Number(kSpanIdLabel), 2);
}

std::vector<std::uint64_t> told;
void Keep(std::uint64_t number) noexcept { told.push_back(number); }

TEST(ProcessContext, TellsAListenerWhatThereIsAndEachChange) {
  internal::ProcessContext::SetLabels(5);
  EXPECT_EQ(internal::ProcessContext::labels(), 5U);
  internal::ProcessContext::Tell(&Keep);
  internal::ProcessContext::SetLabels(6);
  internal::ProcessContext::SetLabels(kNoContext);
  EXPECT_EQ(told, (std::vector<std::uint64_t>{5, 6, kNoContext}));
}

TEST(ProcessContext, AWorkerAsksForThatOfItsProgram) {
  internal::ProcessContext::SetLabels(5);
  EXPECT_EQ(internal::ProcessContext::LabelsOfProgram(), 5U);
  internal::ProcessContext::Serve([]() -> std::uint64_t { return 9; });
  EXPECT_EQ(internal::ProcessContext::LabelsOfProgram(), 9U);
  EXPECT_EQ(internal::ProcessContext::labels(), 5U) << "captures are of this process";
}

}  // namespace
}  // namespace strobe
