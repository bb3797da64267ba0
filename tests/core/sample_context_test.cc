#include "strobe/core/sample_context.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

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
  context.Set({});
  EXPECT_TRUE(context.Read().empty());
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

}  // namespace
}  // namespace strobe
