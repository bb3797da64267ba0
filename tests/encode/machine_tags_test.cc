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

TEST(MachineTagsTest, WhatAProcessAloneHasIsNotShared) {
  const LabelSet machine({{"container_id", "abc"}, {"os", "Own"}, {"cpus", 4}, {"colour", "red"}});
  const auto keys = [&](MachinePart part) {
    std::string text;
    VisitMachine(machine, part, [&](const MachineTag& tag, const Label& label) {
      EXPECT_EQ(tag.key, label.key);
      text += label.key + " ";
    });
    return text;
  };
  EXPECT_EQ(keys(MachinePart::kAll), "cpus os container_id ") << "in the order of the table";
  EXPECT_EQ(keys(MachinePart::kShared), "cpus os ");
}

}  // namespace
}  // namespace strobe
