#include "strobe/process/process_names.h"

#include <cstdint>
#include <vector>

#include "fake_image.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace strobe::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr Address kCode = 0x7F0000000000;
constexpr std::uint64_t kNamedProcess = 42;

class ProcessNamesTest : public ::testing::Test {
 protected:
  ProcessNamesTest() {
    files_.Write("/lib/libone.so", {});
    table_.Map(kNamedProcess, {kCode, kCode + 0x1000, FakeImage::kOffset, "/lib/libone.so"});
  }
  std::vector<AddressName> Name(const std::vector<Address>& addresses) {
    return names_.Name(*table_.Find(kNamedProcess), addresses);
  }
  static NamedFunction Unresolved(const std::string& name) {
    return {.function = name, .resolved = false};
  }

  FakeFiles files_;
  ProcessTable table_{files_};
  ProcessNames names_{files_};
};

TEST_F(ProcessNamesTest, CodeWithoutASymbolHasItsModuleAndPlace) {
  const std::vector<AddressName> names = Name({kCode + 0x34, kCode});
  ASSERT_EQ(names.size(), 2u);
  EXPECT_THAT(names[0].functions, ElementsAre(Unresolved("libone.so+0x1034")));
  EXPECT_EQ(names[0].module, "/lib/libone.so");
  EXPECT_EQ(names[0].file_offset, FakeImage::kOffset + 0x34);
  EXPECT_EQ(names[1].file_offset, FakeImage::kOffset);
}

TEST_F(ProcessNamesTest, AddressesWithoutAFileHaveANameEach) {
  table_.Map(kNamedProcess, {0x10000, 0x11000, 0, "//anon"});
  const std::vector<AddressName> names = Name({0x10010, 0x999000, kCode});
  ASSERT_EQ(names.size(), 3u);
  EXPECT_EQ(names[0].module, "//anon");
  ASSERT_EQ(names[0].functions.size(), 1u);
  EXPECT_FALSE(names[0].functions[0].resolved);
  EXPECT_THAT(names[1].functions, ElementsAre(Unresolved("0x999000")));
  EXPECT_EQ(names[1].module, "");
  EXPECT_EQ(names[2].module, "/lib/libone.so");
}

TEST_F(ProcessNamesTest, WithoutModesNamesAreAddresses) {
  ProcessNames none(files_, {.mode = SymbolMode::kNone});
  const std::vector<Address> address = {kCode + 0x34};
  const std::vector<AddressName> names = none.Name(*table_.Find(kNamedProcess), address);
  ASSERT_EQ(names.size(), 1u);
  EXPECT_THAT(names[0].functions, ElementsAre(Unresolved("0x7f0000000034")));
  EXPECT_EQ(names[0].module, "/lib/libone.so");
  EXPECT_THAT(names_.Name(*table_.Find(kNamedProcess), {}), IsEmpty());
}

}  // namespace
}  // namespace strobe::testing
