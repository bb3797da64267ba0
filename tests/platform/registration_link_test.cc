#include "strobe/platform/registration_link.h"

#include <thread>

#include "gtest/gtest.h"

namespace strobe::internal {
namespace {

TEST(RegistrationLinks, EachThreadHasItsOwn) {
  RegistrationLink link;
  RegistrationLinks() = &link;
  std::thread([] {
    EXPECT_EQ(RegistrationLinks(), nullptr);
    RegistrationLink other;
    RegistrationLinks() = &other;
    RegistrationLinks() = nullptr;
  }).join();
  EXPECT_EQ(RegistrationLinks(), &link);
  RegistrationLinks() = nullptr;
}

TEST(OwnContext, IsInAllOfTheThreadsChannels) {
  ThreadContext inner_context;
  ThreadContext outer_context;
  RegistrationLink outer;
  outer.context = &outer_context;
  RegistrationLink inner;
  inner.context = &inner_context;
  inner.next = &outer;
  RegistrationLinks() = &inner;
  const TraceContext trace{.trace_id = 1, .span_id = 2, .local_root_span_id = 3};
  SetOwnLabels(7);
  SetOwnTrace(trace);
  for (const SampleContext& context : {OwnContext(), inner_context.Read(), outer_context.Read()})
    EXPECT_EQ(context, SampleContext(7, trace));
  BeginOwnSpan(5, 100);
  for (const SampleContext& context : {OwnContext(), inner_context.Read(), outer_context.Read()})
    EXPECT_EQ(context.span(), 5U);
  EXPECT_EQ(inner_context.SlowSpan(101), 5U);
  EndOwnSpan();
  EXPECT_EQ(inner_context.Read(), SampleContext(7, trace));
  std::thread([] { EXPECT_TRUE(OwnContext().empty()); }).join();
  RegistrationLinks() = nullptr;
  SetOwnTrace({});
  SetOwnLabels(kNoContext);
  EXPECT_TRUE(OwnContext().empty());
}

}  // namespace
}  // namespace strobe::internal
