#include "strobe/process_label.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "strobe/aggregate/label_table.h"
#include "strobe/core/sample_context.h"

namespace strobe {
namespace {

const LabelSet& Published() { return ProcessLabels()[internal::ProcessContext::labels()]; }

TEST(ProcessLabel, HoldsFromItsConstructionToItsEnd) {
  EXPECT_TRUE(Published().empty());
  {
    ProcessLabel level("level", "forest");
    EXPECT_EQ(Published().Text("level"), "forest");
    const ProcessLabel view("view", 7);
    EXPECT_EQ(Published().Number("view"), 7);
    level.Set("desert");
    EXPECT_EQ(Published().Text("level"), "desert");
    level.Set(3);
    EXPECT_EQ(Published().Number("level"), 3);
    EXPECT_EQ(Published().labels().size(), 2U);
  }
  EXPECT_TRUE(Published().empty());
}

TEST(ProcessLabel, TheLaterOneOfAKeyHolds) {
  auto first = std::make_unique<ProcessLabel>("level", "first");
  auto second = std::make_unique<ProcessLabel>("level", "second");
  first->Set("changed");
  EXPECT_EQ(Published().Text("level"), "second");
  second.reset();
  EXPECT_EQ(Published().Text("level"), "changed");
  second = std::make_unique<ProcessLabel>("level", "third");
  first.reset();
  EXPECT_EQ(Published().Text("level"), "third") << "in whatever order they end";
}

TEST(ProcessLabel, AsManyAsASetHasCount) {
  std::vector<std::unique_ptr<ProcessLabel>> labels;
  for (std::size_t i = 0; i <= LabelSet::kMaxLabels; ++i)
    labels.push_back(std::make_unique<ProcessLabel>("key " + std::to_string(i), i));
  EXPECT_EQ(Published().labels().size(), LabelSet::kMaxLabels);
  EXPECT_EQ(Published().Number("key 16"), 16) << "those that were made last";
  EXPECT_EQ(Published().Number("key 0"), 0);
}

}  // namespace
}  // namespace strobe
