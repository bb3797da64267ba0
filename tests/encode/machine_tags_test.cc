#include "strobe/encode/machine_tags.h"

#include <string>

#include "gtest/gtest.h"

namespace strobe {
namespace {

TEST(MachineTagsTest, ACommentReadsBackAsTheTags) {
  const LabelSet machine({{"cpus", 4}, {"cpu_quota", "1.5"}, {"cpu_model", "Fast(R) CPU @ 3 GHz"}});
  const std::string comment = MachineComment(machine);
  EXPECT_EQ(comment, "machine: cpu_model=Fast(R) CPU @ 3 GHz; cpu_quota=1.5; cpus=4");
  EXPECT_EQ(MachineIn(comment), machine);
}

TEST(MachineTagsTest, WithoutTagsThereIsNoComment) {
  EXPECT_EQ(MachineComment({}), "");
  EXPECT_TRUE(MachineIn("").empty());
}

TEST(MachineTagsTest, WhatAValueHasEndsNoTag) {
  const LabelSet read = MachineIn(MachineComment(LabelSet({{"os", "Own; cpus=9"}, {"cpus", 4}})));
  EXPECT_EQ(read.Text("os"), "Own, cpus=9");
  EXPECT_EQ(read.Number("cpus"), 4);
}

TEST(MachineTagsTest, OtherTextsHaveNoTags) {
  EXPECT_TRUE(MachineIn("rate: 100 Hz; cpus=4").empty());
  EXPECT_EQ(MachineComment(MachineIn("machine: colour=red; ; =; cpus; kernel=6.1")),
            "machine: kernel=6.1");
}

}  // namespace
}  // namespace strobe
