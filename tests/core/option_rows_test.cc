#include "strobe/core/settings/option_rows.h"

#include <array>
#include <map>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace strobe::internal {
namespace {

using ::testing::ElementsAre;

struct ServerOptions {
  Option<std::string> address = Option<std::string>::Default{"localhost"};
  Option<std::int64_t> port = Option<std::int64_t>::Default{80};
  Option<Secret> key = Option<Secret>::Default{{}};
};

constexpr Path kText{"a text"};
constexpr Between<std::int64_t> kPort{1, 65535, "a port"};
struct ShortKey {
  std::string_view text;
  [[nodiscard]] bool Accepts(const Secret& value) const { return value.Reveal().size() < 8; }
};
constexpr ShortKey kKey{"a key of up to 7 bytes"};
constexpr std::array kTable = {
    FieldRow<ServerOptions, &ServerOptions::address, kText>("OLD_ADDRESS", "address", "Where."),
    FieldRow<ServerOptions, &ServerOptions::address, kText>("ADDRESS", "address", "Where."),
    FieldRow<ServerOptions, &ServerOptions::port, kPort>("PORT", "port", "The port."),
    FieldRow<ServerOptions, &ServerOptions::key, kKey>("KEY", "key", "The key."),
};

std::vector<std::string> Apply(ServerOptions& options,
                               const std::map<std::string, std::string>& environment) {
  std::vector<std::string> warnings;
  ApplyRows<ServerOptions>(
      kTable, options,
      [&](const char* name) {
        const auto found = environment.find(name);
        return found == environment.end() ? std::nullopt : std::optional(found->second);
      },
      [&](const std::string& line) { warnings.push_back(line); });
  return warnings;
}

TEST(OptionRows, TheLastVariableOfAFieldCounts) {
  ServerOptions options;
  EXPECT_THAT(Apply(options, {{"OLD_ADDRESS", "old"}}), ElementsAre());
  EXPECT_EQ(*options.address, "old");
  EXPECT_THAT(Apply(options, {{"OLD_ADDRESS", "old"}, {"ADDRESS", "new"}}), ElementsAre());
  EXPECT_EQ(*options.address, "new");
  options.address = "code";
  EXPECT_THAT(Apply(options, {{"ADDRESS", "new"}}), ElementsAre());
  EXPECT_EQ(*options.address, "code");
}

TEST(OptionRows, ASecretIsNeverShown) {
  ServerOptions options;
  EXPECT_THAT(Apply(options, {{"KEY", "12345678"}, {"PORT", "0\n"}}),
              ElementsAre("strobe: PORT=\"0\\n\" is ignored: accepted is a port",
                          "strobe: KEY is ignored: accepted is a key of up to 7 bytes"));
  EXPECT_THAT(Apply(options, {{"KEY", "1234567"}}), ElementsAre());
  EXPECT_EQ(options.key->Reveal(), "1234567");
  EXPECT_EQ(kTable[3].get(options), "(secret)");
  options.key = "12345678";
  EXPECT_EQ(CheckRows<ServerOptions>(kTable, options).message(),
            "key is \"(secret)\": accepted is a key of up to 7 bytes");
  options.key = "";
  EXPECT_EQ(kTable[3].get(options), "");
  EXPECT_TRUE(CheckRows<ServerOptions>(kTable, options).ok());
}

}  // namespace
}  // namespace strobe::internal
