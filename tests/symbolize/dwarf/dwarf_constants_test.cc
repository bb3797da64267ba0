#include "../../../src/symbolize/dwarf/dwarf_constants.h"

#include <array>
#include <cstddef>

#include "gtest/gtest.h"

namespace strobe::internal {
namespace {

// The standard leaves numbers from these on to vendors (DWARF 5, section 7). Forms have no such
// range; GCC's begin here.
constexpr std::uint16_t kVendorAttributes = 0x2000;
constexpr std::uint16_t kGnuForms = 0x1F00;

TEST(DwarfConstantsTest, OnlyExtensionsHaveVendorsNumbers) {
  using A = DwarfAttribute;
  for (const A attribute :
       {A::kMipsLinkageName, A::kGnuDwoName, A::kGnuDwoId, A::kGnuRangesBase, A::kGnuAddressBase})
    EXPECT_GE(static_cast<std::uint16_t>(attribute), kVendorAttributes);
  EXPECT_LT(static_cast<std::uint16_t>(A::kDwoName), kVendorAttributes);
  using F = DwarfForm;
  for (const F form : {F::kGnuAddressIndex, F::kGnuStringIndex, F::kGnuReferenceAlternative,
                       F::kGnuStringAlternative})
    EXPECT_GE(static_cast<std::uint16_t>(form), kGnuForms);
  EXPECT_LT(static_cast<std::uint16_t>(F::kAddressIndex4), kGnuForms);
}

TEST(DwarfConstantsTest, NumberedFormsFollowEachOther) {
  using F = DwarfForm;
  for (const F first : {F::kStringIndex1, F::kAddressIndex1}) {
    const std::array rest =
        first == F::kStringIndex1
            ? std::array{F::kStringIndex2, F::kStringIndex3, F::kStringIndex4}
            : std::array{F::kAddressIndex2, F::kAddressIndex3, F::kAddressIndex4};
    for (std::size_t i = 0; i < rest.size(); ++i)
      EXPECT_EQ(static_cast<std::size_t>(rest[i]), static_cast<std::size_t>(first) + i + 1);
  }
}

}  // namespace
}  // namespace strobe::internal
