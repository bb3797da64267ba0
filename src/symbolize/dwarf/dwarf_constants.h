// The numbers of DWARF that are used here: "DWARF Debugging Information Format", version 5,
// section 7; those with GNU in their names are extensions of GCC, GDB and dwz.
#pragma once

#include <cstdint>

namespace strobe::internal {

enum class DwarfTag : std::uint16_t {
  kClassType = 0x02,
  kEntryPoint = 0x03,
  kLexicalBlock = 0x0B,
  kCompileUnit = 0x11,
  kStructureType = 0x13,
  kUnionType = 0x17,
  kInlinedSubroutine = 0x1D,
  kModule = 0x1E,
  kCatchBlock = 0x25,
  kSubprogram = 0x2E,
  kTryBlock = 0x32,
  kInterfaceType = 0x38,
  kNamespace = 0x39,
  kPartialUnit = 0x3C,
  kSkeletonUnit = 0x4A,
};

enum class DwarfAttribute : std::uint16_t {
  kSibling = 0x01,
  kName = 0x03,
  kStatementList = 0x10,
  kLowPc = 0x11,
  kHighPc = 0x12,
  kCompilationDirectory = 0x1B,
  kAbstractOrigin = 0x31,
  kDeclarationFile = 0x3A,
  kDeclarationLine = 0x3B,
  kSpecification = 0x47,
  kRanges = 0x55,
  kCallColumn = 0x57,
  kCallFile = 0x58,
  kCallLine = 0x59,
  kLinkageName = 0x6E,
  kStringOffsetsBase = 0x72,
  kAddressBase = 0x73,
  kRangeListsBase = 0x74,
  kDwoName = 0x76,
  kMipsLinkageName = 0x2007,
  kGnuDwoName = 0x2130,
  kGnuDwoId = 0x2131,
  kGnuRangesBase = 0x2132,
  kGnuAddressBase = 0x2133,
  kGnuDiscriminator = 0x2136,
};

enum class DwarfForm : std::uint16_t {
  kAddress = 0x01,
  kBlock2 = 0x03,
  kBlock4 = 0x04,
  kData2 = 0x05,
  kData4 = 0x06,
  kData8 = 0x07,
  kString = 0x08,
  kBlock = 0x09,
  kBlock1 = 0x0A,
  kData1 = 0x0B,
  kFlag = 0x0C,
  kSignedData = 0x0D,
  kStringOffset = 0x0E,
  kUnsignedData = 0x0F,
  kReferenceAddress = 0x10,
  kReference1 = 0x11,
  kReference2 = 0x12,
  kReference4 = 0x13,
  kReference8 = 0x14,
  kReferenceUnsigned = 0x15,
  kIndirect = 0x16,
  kSectionOffset = 0x17,
  kExpression = 0x18,
  kFlagPresent = 0x19,
  kStringIndex = 0x1A,
  kAddressIndex = 0x1B,
  kReferenceSupplement4 = 0x1C,
  kStringSupplement = 0x1D,
  kData16 = 0x1E,
  kLineString = 0x1F,
  kReferenceSignature = 0x20,
  kImplicitConstant = 0x21,
  kLocationListIndex = 0x22,
  kRangeListIndex = 0x23,
  kReferenceSupplement8 = 0x24,
  kStringIndex1 = 0x25,
  kStringIndex2 = 0x26,
  kStringIndex3 = 0x27,
  kStringIndex4 = 0x28,
  kAddressIndex1 = 0x29,
  kAddressIndex2 = 0x2A,
  kAddressIndex3 = 0x2B,
  kAddressIndex4 = 0x2C,
  kGnuAddressIndex = 0x1F01,
  kGnuStringIndex = 0x1F02,
  kGnuReferenceAlternative = 0x1F20,
  kGnuStringAlternative = 0x1F21,
};

enum class DwarfUnitType : std::uint8_t {
  kCompile = 1,
  kType = 2,
  kPartial = 3,
  kSkeleton = 4,
  kSplitCompile = 5,
  kSplitType = 6,
};

enum class DwarfRangeEntry : std::uint8_t {
  kEnd = 0,
  kBaseAddressIndex = 1,
  kStartIndexEndIndex = 2,
  kStartIndexLength = 3,
  kOffsetPair = 4,
  kBaseAddress = 5,
  kStartEnd = 6,
  kStartLength = 7,
};

// What an entry of the line table's lists of directories and files is about.
enum class DwarfLineContent : std::uint16_t { kPath = 1, kDirectoryIndex = 2 };

}  // namespace strobe::internal
