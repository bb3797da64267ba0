#include "strobe/scoped_trace.h"

#include <gtest/gtest.h>

#include <thread>

#include "strobe/scoped_labels.h"

namespace strobe {
namespace {

TEST(ScopedTrace, InnerScopesWinAndOuterOnesComeBack) {
  EXPECT_TRUE(CurrentTrace().empty());
  {
    const ScopedTrace outer(1, 2, 3);
    {
      const ScopedTrace inner(1, 4, 3);
      EXPECT_EQ(CurrentTrace(), (TraceContext{1, 4, 3}));
    }
    EXPECT_EQ(CurrentTrace(), (TraceContext{1, 2, 3}));
    std::thread([saved = CurrentTrace()] {
      EXPECT_TRUE(CurrentTrace().empty()) << "a thread begins without a span";
      const ScopedTrace taken(saved);
      EXPECT_EQ(CurrentTrace(), (TraceContext{1, 2, 3}));
    }).join();
  }
  EXPECT_TRUE(CurrentTrace().empty());
}

TEST(ScopedTrace, LeavesTheLabelsAlone) {
  const ScopedLabels labels({{"a", 1}});
  const ScopedTrace trace(1, 2, 3);
  EXPECT_EQ(CurrentLabels().set().Number("a"), 1);
  const ScopedLabels none{Labels()};
  EXPECT_EQ(CurrentTrace(), (TraceContext{1, 2, 3}));
}

}  // namespace
}  // namespace strobe
