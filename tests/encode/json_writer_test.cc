#include "../../src/encode/json_writer.h"

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>

#include "gtest/gtest.h"

namespace strobe::internal {
namespace {

TEST(JsonWriterTest, CommasStandBetweenValues) {
  JsonWriter json;
  json.BeginObject();
  json.Member("a", std::int64_t{-1});
  json.Key("b");
  json.BeginArray();
  json.Number(1);
  json.BeginArray();
  json.EndArray();
  json.BeginObject();
  json.EndObject();
  json.Null();
  json.Raw("[2,3]");
  json.EndArray();
  json.Member("c", true);
  json.Member("d", "text");
  json.EndObject();
  EXPECT_EQ(json.Take(), R"({"a":-1,"b":[1,[],{},null,[2,3]],"c":true,"d":"text"})");
  json.BeginArray();
  json.EndArray();
  EXPECT_EQ(json.Take(), "[]");
}

TEST(JsonWriterTest, TextsAreEscapedAndValidUtf8) {
  const auto text = [](std::string_view value) {
    JsonWriter json;
    json.String(value);
    return json.Take();
  };
  EXPECT_EQ(text(""), R"("")");
  EXPECT_EQ(text("a\"b\\c/"), R"("a\"b\\c/")");
  EXPECT_EQ(text(std::string_view("\0\x1F\n\x7F", 4)), "\"\\u0000\\u001f\\u000a\x7F\"");
  EXPECT_EQ(text("w\xC3\xB6rker"), "\"w\xC3\xB6rker\"");
  EXPECT_EQ(text("caf\xE9"), "\"caf?\"");
  EXPECT_EQ(text("</script><!--<T>"), R"("\u003c/script>\u003c!--<T>")");
}

TEST(JsonWriterTest, MillionthsAreExact) {
  const auto text = [](std::int64_t value) {
    JsonWriter json;
    json.Millionths(value);
    return json.Take();
  };
  EXPECT_EQ(text(0), "0");
  EXPECT_EQ(text(1), "0.000001");
  EXPECT_EQ(text(-1'500'000), "-1.5");
  EXPECT_EQ(text(10'000'000), "10");
  EXPECT_EQ(text(100'000'100), "100.0001");
  EXPECT_EQ(text(std::numeric_limits<std::int64_t>::max()), "9223372036854.775807");
  EXPECT_EQ(text(std::numeric_limits<std::int64_t>::min()), "-9223372036854.775808");
}

}  // namespace
}  // namespace strobe::internal
