#include "dwarf_forms.h"

namespace strobe::internal {
namespace {

std::uint64_t ReadBytesAsNumber(DwarfReader& reader, std::uint32_t bytes) {
  switch (bytes) {
    case 0: return 0;
    case 1: return reader.Read<std::uint8_t>();
    case 2: return reader.Read<std::uint16_t>();
    case 3: {
      const std::uint64_t low = reader.Read<std::uint16_t>();
      return low | std::uint64_t{reader.Read<std::uint8_t>()} << 16;
    }
    case 4: return reader.Read<std::uint32_t>();
    case 8: return reader.Read<std::uint64_t>();
    default: reader.Skip(bytes); return 0;
  }
}

void SkipText(DwarfReader& reader) {
  while (reader.Read<std::uint8_t>() != 0) {
  }
}

// A value that an entry has in place of its abbreviation's form.
DwarfForm ReadIndirectForm(DwarfReader& reader) {
  const auto form = static_cast<DwarfForm>(reader.ReadUleb());
  if (form == DwarfForm::kIndirect || form == DwarfForm::kImplicitConstant) reader.Fail();
  return form;
}

}  // namespace

std::optional<std::uint32_t> FixedBytes(DwarfForm form, UnitShape shape) {
  switch (form) {
    case DwarfForm::kFlagPresent:
    case DwarfForm::kImplicitConstant: return 0;
    case DwarfForm::kData1:
    case DwarfForm::kFlag:
    case DwarfForm::kReference1:
    case DwarfForm::kStringIndex1:
    case DwarfForm::kAddressIndex1: return 1;
    case DwarfForm::kData2:
    case DwarfForm::kReference2:
    case DwarfForm::kStringIndex2:
    case DwarfForm::kAddressIndex2: return 2;
    case DwarfForm::kStringIndex3:
    case DwarfForm::kAddressIndex3: return 3;
    case DwarfForm::kData4:
    case DwarfForm::kReference4:
    case DwarfForm::kReferenceSupplement4:
    case DwarfForm::kStringIndex4:
    case DwarfForm::kAddressIndex4: return 4;
    case DwarfForm::kAddress:
    case DwarfForm::kData8:
    case DwarfForm::kReference8:
    case DwarfForm::kReferenceSupplement8:
    case DwarfForm::kReferenceSignature: return 8;
    case DwarfForm::kData16: return 16;
    case DwarfForm::kReferenceAddress:  // as large as an address before version 3
      return shape.version <= 2 ? 8 : static_cast<std::uint32_t>(shape.offset_bytes());
    case DwarfForm::kStringOffset:
    case DwarfForm::kSectionOffset:
    case DwarfForm::kStringSupplement:
    case DwarfForm::kLineString:
    case DwarfForm::kGnuReferenceAlternative:
    case DwarfForm::kGnuStringAlternative: return static_cast<std::uint32_t>(shape.offset_bytes());
    default: return std::nullopt;
  }
}

void SkipVarying(DwarfReader& reader, DwarfForm form, UnitShape shape) {
  switch (form) {
    case DwarfForm::kString: SkipText(reader); break;
    case DwarfForm::kBlock1: reader.Skip(reader.Read<std::uint8_t>()); break;
    case DwarfForm::kBlock2: reader.Skip(reader.Read<std::uint16_t>()); break;
    case DwarfForm::kBlock4: reader.Skip(reader.Read<std::uint32_t>()); break;
    case DwarfForm::kBlock:
    case DwarfForm::kExpression: reader.Skip(reader.ReadUleb()); break;
    case DwarfForm::kSignedData:
    case DwarfForm::kUnsignedData:
    case DwarfForm::kReferenceUnsigned:
    case DwarfForm::kStringIndex:
    case DwarfForm::kAddressIndex:
    case DwarfForm::kLocationListIndex:
    case DwarfForm::kRangeListIndex:
    case DwarfForm::kGnuAddressIndex:
    case DwarfForm::kGnuStringIndex: reader.ReadUleb(); break;
    case DwarfForm::kIndirect: ReadForm(reader, ReadIndirectForm(reader), 0, shape); break;
    default: reader.Fail(); break;
  }
}

FormValue ReadForm(DwarfReader& reader, DwarfForm form, std::int64_t constant, UnitShape shape) {
  FormValue value{.form = form, .is_present = true, .number = 0};
  if (form == DwarfForm::kImplicitConstant) {
    value.number = static_cast<std::uint64_t>(constant);
    return value;
  }
  if (form == DwarfForm::kFlagPresent) {
    value.number = 1;
    return value;
  }
  if (const std::optional<std::uint32_t> bytes = FixedBytes(form, shape)) {
    value.number = ReadBytesAsNumber(reader, *bytes);
    return value;
  }
  switch (form) {
    case DwarfForm::kIndirect: return ReadForm(reader, ReadIndirectForm(reader), 0, shape);
    case DwarfForm::kSignedData:
      value.number = static_cast<std::uint64_t>(reader.ReadSleb());
      break;
    case DwarfForm::kUnsignedData:
    case DwarfForm::kReferenceUnsigned:
    case DwarfForm::kStringIndex:
    case DwarfForm::kAddressIndex:
    case DwarfForm::kLocationListIndex:
    case DwarfForm::kRangeListIndex:
    case DwarfForm::kGnuAddressIndex:
    case DwarfForm::kGnuStringIndex: value.number = reader.ReadUleb(); break;
    default:
      value.number = reader.position();
      SkipVarying(reader, form, shape);
      break;
  }
  return value;
}

}  // namespace strobe::internal
