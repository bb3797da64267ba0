#include "../../../src/symbolize/elf/elf_format.h"

#include <limits>

#include "gtest/gtest.h"
#include "support/bytes.h"

namespace strobe::internal {
namespace {

using testing::Bytes;
using testing::Fixed;
using testing::Join;

TEST(ElfFormatTest, ReadsAStructureAsItIs) {
  const Bytes bytes = Join({{9},
                            Fixed(std::uint32_t{1}),
                            Fixed(std::uint32_t{0}),
                            Fixed(std::uint64_t{300}),
                            Fixed(std::uint64_t{8})});
  const SpanSource source(std::as_bytes(std::span(bytes)));
  CompressionHeader header{};
  ASSERT_TRUE(ReadOne(source, 1, header));
  EXPECT_EQ(header.type, CompressionHeader::kZlib);
  EXPECT_EQ(header.size, 300u);
  EXPECT_EQ(header.alignment, 8u);
  EXPECT_FALSE(ReadOne(source, 2, header)) << "its last byte is missing";
  EXPECT_FALSE(ReadOne(source, std::numeric_limits<std::uint64_t>::max(), header));
}

TEST(ElfFormatTest, ReadsArraysThatAreThere) {
  const Bytes bytes = Join({Fixed(std::uint32_t{1}), Fixed(std::uint32_t{2}), {3, 0, 0}});
  const SpanSource source(std::as_bytes(std::span(bytes)));
  std::vector<std::uint32_t> values;
  ASSERT_TRUE(ReadArray(source, 0, 2, values));
  EXPECT_EQ(values, (std::vector<std::uint32_t>{1, 2}));
  EXPECT_TRUE(ReadArray(source, bytes.size(), 0, values));
  EXPECT_TRUE(values.empty());
}

TEST(ElfFormatTest, CountsBeyondTheSourceTakeNoMemory) {
  const Bytes bytes(8);
  const SpanSource source(std::as_bytes(std::span(bytes)));
  std::vector<std::uint32_t> values;
  for (const std::uint64_t count :
       {std::uint64_t{3}, (std::uint64_t{1} << 62) + 1, std::numeric_limits<std::uint64_t>::max()})
    EXPECT_FALSE(ReadArray(source, 0, count, values)) << count;
  EXPECT_FALSE(ReadArray(source, 9, 0, values));
  EXPECT_FALSE(ReadArray(source, std::numeric_limits<std::uint64_t>::max(), 1, values));
  EXPECT_EQ(values.capacity(), 0u);
}

}  // namespace
}  // namespace strobe::internal
