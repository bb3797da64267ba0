#include "../../src/core/elf_notes.h"

#include <gtest/gtest.h>

#include <cstdint>

#include "support/bytes.h"

namespace strobe::internal {
namespace {

using testing::Bytes;
using testing::Fixed;
using testing::Join;

Bytes Padded(Bytes bytes, std::size_t alignment) {
  while (bytes.size() % alignment != 0) bytes.push_back(0);
  return bytes;
}
Bytes Note(std::uint32_t type, const Bytes& description, std::size_t alignment) {
  const Bytes head = Join({Fixed(std::uint32_t{4}),
                           Fixed(static_cast<std::uint32_t>(description.size())),
                           Fixed(type),
                           {'G', 'N', 'U', 0}});
  return Padded(Join({Padded(head, alignment), description}), alignment);
}
constexpr std::uint32_t kBuildId = 3;
constexpr std::uint32_t kProperty = 5;
const Bytes kId = {0x0F, 0xA1, 0xB2, 0xC3, 0xD4};
constexpr const char* kIdText = "0fa1b2c3d4";

TEST(BuildIdIn, IsInOneOfTheNotes) {
  EXPECT_EQ(BuildIdIn(Note(kBuildId, kId, 4), 4), kIdText);
  EXPECT_EQ(BuildIdIn(Join({Note(1, {1, 2, 3}, 4), Note(kBuildId, kId, 4)}), 4), kIdText);
  EXPECT_EQ(BuildIdIn(Note(kProperty, kId, 4), 4), "");
  EXPECT_EQ(BuildIdIn({}, 4), "");
}

TEST(BuildIdIn, TheNextNoteBeginsAtAMultipleOfTheAlignment) {
  EXPECT_EQ(BuildIdIn(Join({Note(kProperty, {1}, 8), Note(kBuildId, kId, 8)}), 8), kIdText);
  EXPECT_EQ(BuildIdIn(Join({Note(kProperty, {1}, 4), Note(kBuildId, kId, 4)}), 1), kIdText);
}

// mold: one segment for sections of both alignments.
TEST(BuildIdIn, ASegmentMayHoldNotesOfBothAlignments) {
  EXPECT_EQ(BuildIdIn(Join({Note(1, {1}, 4), Note(kBuildId, kId, 4), Note(kProperty, {1}, 8)}), 8),
            kIdText);
}

TEST(BuildIdIn, BrokenNotesHaveNone) {
  const Bytes whole = Join({Note(1, {1, 2}, 4), Note(kBuildId, kId, 4)});
  for (const std::uint64_t alignment : {4, 8}) {
    for (std::size_t bytes = 0; bytes + 3 < whole.size(); ++bytes)
      EXPECT_EQ(BuildIdIn(std::span(whole).first(bytes), alignment), "") << bytes;
  }
  const Bytes endless = Join({Fixed(~std::uint32_t{0}), Fixed(~std::uint32_t{0}), Fixed(kBuildId)});
  EXPECT_EQ(BuildIdIn(endless, 4), "");
  EXPECT_EQ(BuildIdIn(Note(kBuildId, Bytes(65, 7), 4), 4), "") << "longer than any";
}

}  // namespace
}  // namespace strobe::internal
