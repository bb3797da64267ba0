#include "../../src/encode/firefox/firefox_tables.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "strobe/testing/profiles.h"

namespace strobe::internal {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(BreakpadIdTest, IsAGuidOfTheFirstBytesAndAnAge) {
  EXPECT_EQ(BreakpadId("00112233445566778899aabbccddeeff"), "33221100554477668899AABBCCDDEEFF0");
  EXPECT_EQ(BreakpadId("00112233445566778899AABBCCDDEEFF01234567"),
            "33221100554477668899AABBCCDDEEFF0");
}

TEST(BreakpadIdTest, ABuildIdOfAnotherFormStaysAsItIs) {
  EXPECT_EQ(BreakpadId(""), "");
  EXPECT_EQ(BreakpadId("0123456789abcdef"), "0123456789abcdef");
  EXPECT_EQ(BreakpadId("00112233445566778899aabbccddeefg"), "00112233445566778899aabbccddeefg");
}

// The text of what one member writes.
template <class Write>
std::string FirefoxJson(Write write) {
  JsonWriter json;
  write(json);
  return json.Take();
}

// A frame in each of two libraries, in which the same function is inlined; one of the second is in
// the first's own function, too.
testing::SampleProfile TwoLibraries() {
  testing::SampleProfile sample{"libraries", testing::ProfileHead(), {}};
  Profile& profile = sample.profile;
  profile.modules = {
      {.start = 0x1000, .limit = 0x2000, .path = "/bin/unused", .build_id = ""},
      {.start = 0x3000, .limit = 0x4000, .load_bias = 0x3000, .path = "/lib/b.so", .build_id = ""},
      {.start = 0x5000,
       .limit = 0x6000,
       .load_bias = 0x5000,
       .path = "C:\\a.dll",
       .build_id = "abc1",
       .format = ImageFormat::kPe}};
  testing::ProfileBuilder builder(profile);
  builder.AddThread(7, "main");
  const std::uint32_t b = builder.AddFrame(0x3100, 1);
  const std::uint32_t a = builder.AddFrame(0x5200, 2);
  builder.AddSample(0, {b, a}, {1, 10});
  sample.symbols.functions = {{.name = "f", .system_name = "f", .file = "f.h", .line = 3}};
  sample.symbols.frames = {{.function = 0, .line = 4}, {.function = 0, .line = 5}};
  return sample;
}

TEST(FirefoxTablesTest, LibrariesAreThoseThatFramesAreIn) {
  const testing::SampleProfile sample = TwoLibraries();
  const absl::StatusOr<ProfileView> view = ProfileView::Make(sample.profile, sample.symbols);
  ASSERT_TRUE(view.ok()) << view.status();
  const FirefoxTables tables(*view);
  EXPECT_EQ(FirefoxJson([&](JsonWriter& json) { tables.WriteLibraries(json); }),
            R"([{"arch":"","name":"b.so","path":"/lib/b.so","debugName":"b.so",)"
            R"("debugPath":"/lib/b.so","breakpadId":"","codeId":null},)"
            R"({"arch":"","name":"a.dll","path":"C:\\a.dll","debugName":"a.dll",)"
            R"("debugPath":"C:\\a.dll","breakpadId":"abc1","codeId":null}])");
}

TEST(FirefoxTablesTest, AFunctionInTwoLibrariesIsTwoFunctions) {
  const testing::SampleProfile sample = TwoLibraries();
  const absl::StatusOr<ProfileView> view = ProfileView::Make(sample.profile, sample.symbols);
  ASSERT_TRUE(view.ok()) << view.status();
  FirefoxTables tables(*view);
  const std::string text = FirefoxJson([&](JsonWriter& json) { tables.WriteShared(json); });
  EXPECT_THAT(text, HasSubstr(R"("stackTable":{"prefix":[null,0],"frame":[0,1],"length":2})"));
  EXPECT_THAT(text, HasSubstr(R"("address":[256,512],)")) << "in the library";
  EXPECT_THAT(text, HasSubstr(R"("funcTable":{"name":[2,2],)"));
  EXPECT_THAT(text, HasSubstr(R"("resource":[0,1],"source":[0,0],"lineNumber":[3,3],)"));
  EXPECT_THAT(text, HasSubstr(R"("nativeSymbols":{"libIndex":[0,1],"address":[256,512],)"));
  EXPECT_THAT(text, HasSubstr(R"("sources":{"id":[null],)")) << "its file is one";
  EXPECT_THAT(text, HasSubstr(R"("stringArray":["","b.so","f","f.h","a.dll"])"));
}

TEST(FirefoxTablesTest, AStackWithoutFramesIsThereIfASampleHasIt) {
  testing::SampleProfile sample = TwoLibraries();
  {
    const absl::StatusOr<ProfileView> view = ProfileView::Make(sample.profile, sample.symbols);
    ASSERT_TRUE(view.ok()) << view.status();
    FirefoxTables tables(*view);
    EXPECT_EQ(tables.StackOf(0), -1);
    EXPECT_EQ(tables.StackOf(1), 0);
    EXPECT_EQ(tables.StackOf(2), 1);
    EXPECT_THAT(FirefoxJson([&](JsonWriter& json) { tables.WriteShared(json); }),
                Not(HasSubstr("[no stack]")));
  }
  sample.profile.samples.push_back({.stack = 0, .labels = 0});
  sample.profile.values.insert(sample.profile.values.end(), {1, 1});
  const absl::StatusOr<ProfileView> view = ProfileView::Make(sample.profile, sample.symbols);
  ASSERT_TRUE(view.ok()) << view.status();
  FirefoxTables tables(*view);
  EXPECT_EQ(tables.StackOf(0), 2);
  EXPECT_THAT(FirefoxJson([&](JsonWriter& json) { tables.WriteShared(json); }),
              HasSubstr("[no stack]"));
}

TEST(FirefoxTablesTest, AnAddressIsANumberThatADoubleHolds) {
  testing::SampleProfile sample = TwoLibraries();
  sample.profile.modules[1].load_bias = 0x3101;  // the difference is -1
  const absl::StatusOr<ProfileView> view = ProfileView::Make(sample.profile, sample.symbols);
  ASSERT_TRUE(view.ok()) << view.status();
  const FirefoxTables tables(*view);
  EXPECT_THAT(FirefoxJson([&](JsonWriter& json) { tables.WriteShared(json); }),
              HasSubstr(R"("address":[9007199254740991,512],)"));
}

TEST(FirefoxTablesTest, TextsOfMarkersAreNumberedBehindThoseOfTheTables) {
  const testing::SampleProfile sample = TwoLibraries();
  const absl::StatusOr<ProfileView> view = ProfileView::Make(sample.profile, sample.symbols);
  ASSERT_TRUE(view.ok()) << view.status();
  FirefoxTables tables(*view);
  EXPECT_EQ(tables.Text("request"), 5U);
  EXPECT_EQ(tables.Text("f"), 2U);
  EXPECT_EQ(tables.Text("request"), 5U);
  EXPECT_THAT(FirefoxJson([&](JsonWriter& json) { tables.WriteShared(json); }),
              HasSubstr(R"("a.dll","request"])"));
}

TEST(FirefoxTablesTest, CategoriesHaveTheOrderOfTheirNumbers) {
  const std::string text =
      FirefoxJson([](JsonWriter& json) { FirefoxTables::WriteCategories(json); });
  const auto place = [&](const char* name) { return text.find(name); };
  EXPECT_LT(place("Other"), place("Program"));
  EXPECT_LT(place("Program"), place("\"Library"));
  EXPECT_LT(place("\"Library"), place("System"));
  EXPECT_LT(place("System"), place("Generated code"));
}

}  // namespace
}  // namespace strobe::internal
