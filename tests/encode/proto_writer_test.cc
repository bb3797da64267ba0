#include "../../src/encode/proto_writer.h"

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>

#include "gtest/gtest.h"

namespace strobe::internal {
namespace {

// What `write` writes into an empty writer.
template <class Write>
std::string Written(Write write) {
  ProtoWriter writer;
  write(writer);
  EXPECT_EQ(writer.bytes().size(), writer.size());
  return writer.Take();
}

TEST(ProtoWriterTest, IntegersAreVarintsBehindTheirKeys) {
  EXPECT_EQ(Written([](ProtoWriter& writer) { writer.Field(1, 150); }), "\x08\x96\x01");
  EXPECT_EQ(Written([](ProtoWriter& writer) { writer.Field(16, 1); }), "\x80\x01\x01");
  EXPECT_EQ(Written([](ProtoWriter& writer) {
              writer.Field(1, static_cast<std::uint64_t>(std::int64_t{-1}));
            }),
            "\x08\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\x01");
}

TEST(ProtoWriterTest, DefaultValuesAreLeftOutUnlessTheySayThatTheyAreThere) {
  EXPECT_EQ(Written([](ProtoWriter& writer) {
              writer.Field(1, 0);
              writer.Fixed64(2, 0);
              writer.Bytes(3, "");
              writer.Raw("");
            }),
            "");
  EXPECT_EQ(Written([](ProtoWriter& writer) { writer.Present(1, 0); }),
            std::string_view("\x08\x00", 2));
  EXPECT_EQ(Written([](ProtoWriter& writer) { writer.Message(1, ""); }),
            std::string_view("\x0A\x00", 2));
  EXPECT_EQ(Written([](ProtoWriter& writer) { writer.Varint(0); }), std::string_view("\0", 1));
}

TEST(ProtoWriterTest, FixedNumbersHaveTheirLowestByteFirst) {
  EXPECT_EQ(Written([](ProtoWriter& writer) { writer.Fixed64(3, 0x0102030405060708); }),
            "\x19\x08\x07\x06\x05\x04\x03\x02\x01");
  EXPECT_EQ(Written([](ProtoWriter& writer) {
              writer.Fixed64(3, std::numeric_limits<std::uint64_t>::max());
            }),
            "\x19\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF");
}

TEST(ProtoWriterTest, MessagesStandBehindTheirLengths) {
  EXPECT_EQ(Written([](ProtoWriter& writer) { writer.Bytes(2, "abc"); }),
            "\x12\x03"
            "abc");
  const std::string content(300, 'x');
  EXPECT_EQ(Written([&](ProtoWriter& writer) { writer.Message(2, content); }),
            "\x12\xAC\x02" + content);
  EXPECT_EQ(Written([&](ProtoWriter& writer) {
              writer.Raw(content);
              writer.Raw("\x08\x01");
            }),
            content + "\x08\x01");
}

TEST(ProtoWriterTest, AClearedWriterBeginsAnew) {
  ProtoWriter writer;
  writer.Bytes(1, std::string(1000, 'x'));
  writer.Clear();
  EXPECT_EQ(writer.size(), 0U);
  EXPECT_EQ(writer.bytes(), "");
  writer.Field(1, 1);
  EXPECT_EQ(writer.bytes(), "\x08\x01");
}

TEST(ProtoWriterTest, AWriterWhoseContentWasTakenBeginsAnew) {
  ProtoWriter writer;
  writer.Field(1, 1);
  EXPECT_EQ(writer.Take(), "\x08\x01");
  EXPECT_EQ(writer.Take(), "");
  writer.Field(1, 2);
  EXPECT_EQ(writer.bytes(), "\x08\x02");
}

TEST(ProtoWriterTest, GrowsWithItsContent) {
  ProtoWriter writer;
  std::string expected;
  for (int i = 0; i < 2000; ++i) {
    const std::string text(static_cast<std::size_t>(i % 100 + 1), static_cast<char>('a' + i % 26));
    writer.Bytes(1, text);
    expected += '\x0A';
    expected += static_cast<char>(text.size());
    expected += text;
  }
  EXPECT_EQ(writer.bytes(), expected);
}

}  // namespace
}  // namespace strobe::internal
