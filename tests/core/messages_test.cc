#include "strobe/core/settings/messages.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <string_view>

namespace strobe::internal {
namespace {

using Kind = MessageTarget::Kind;

TEST(MessageTarget, IsWhatTheVariableSays) {
  EXPECT_EQ(ParseMessageTarget(std::nullopt), MessageTarget());
  EXPECT_EQ(ParseMessageTarget(""), MessageTarget());
  EXPECT_EQ(ParseMessageTarget("stderr"), MessageTarget());
  EXPECT_EQ(ParseMessageTarget("none"), MessageTarget{.kind = Kind::kNone});
  EXPECT_EQ(ParseMessageTarget("syslog"), MessageTarget{.kind = Kind::kSystemLog});
  EXPECT_EQ(ParseMessageTarget("strobe.log"),
            (MessageTarget{.kind = Kind::kFile, .path = "strobe.log"}));
}

TEST(MessageSink, IsTheLastThatWasSet) {
  const MessageSink first = [](std::string_view /*line*/) {};
  EXPECT_EQ(CurrentMessageSink(), nullptr);
  EXPECT_EQ(SetMessageSink(first), nullptr);
  EXPECT_EQ(CurrentMessageSink(), first);
  EXPECT_EQ(SetMessageSink(nullptr), first);
  EXPECT_EQ(CurrentMessageSink(), nullptr);
}

}  // namespace
}  // namespace strobe::internal
