#include "dwarf_functions.h"

#include <algorithm>
#include <limits>

#include "unwind/dwarf_reader.h"

namespace strobe::internal {
namespace {

constexpr std::uint32_t kNoFunction = FunctionEntry::kNone;
// Entries nested more deeply end the walk.
constexpr std::size_t kMaxDepth = 4096;

std::uint32_t Clamped(std::uint64_t number) {
  return static_cast<std::uint32_t>(
      std::min<std::uint64_t>(number, std::numeric_limits<std::uint32_t>::max()));
}

// One walk through the entries of a unit.
class FunctionWalk {
 public:
  FunctionWalk(DwarfFile& file, const DwarfUnit& unit, std::span<const std::uint8_t> bytes,
               std::span<const std::uint64_t> addresses, FunctionMap& map)
      : file_(file), unit_(unit), reader_(bytes, 0), addresses_(addresses), map_(map) {}

  // If `visits_all`, the walk goes into every entry. Else it leaves out what usually has no wanted
  // code below it: types, and functions whose own code is elsewhere.
  void Run(bool visits_all) {
    visits_all_ = visits_all;
    reader_.Seek(static_cast<std::size_t>(unit_.header.root - unit_.header.position));
    do {
      const std::uint64_t code = reader_.ReadUleb();
      if (code == 0) {
        if (!Leave()) return;
        continue;
      }
      const Abbreviation* const entry = unit_.abbreviations->Find(code);
      if (entry == nullptr || scopes_.size() > kMaxDepth) return;
      Visit(*entry);
    } while (reader_.ok() && !scopes_.empty());
  }

 private:
  static constexpr std::size_t kNotSkipping = std::numeric_limits<std::size_t>::max();

  // What an entry's attributes say.
  struct Attributes {
    FunctionEntry function;
    FormValue low_pc, high_pc, ranges;
    std::uint64_t sibling = 0;

    [[nodiscard]] bool has_code() const { return low_pc.is_present || ranges.is_present; }
  };

  void Visit(const Abbreviation& entry) {
    if (skipped_from_ != kNotSkipping) {
      Enter(entry, unit_.abbreviations->Skip(reader_, entry), kNoFunction, false);
      return;
    }
    const std::uint32_t enclosing = scopes_.empty() ? kNoFunction : scopes_.back();
    switch (entry.tag) {
      case DwarfTag::kSubprogram:
      case DwarfTag::kInlinedSubroutine: VisitFunction(entry, enclosing); break;
      case DwarfTag::kLexicalBlock:
      case DwarfTag::kTryBlock:
      case DwarfTag::kCatchBlock: {
        const Attributes block = ReadAttributes(entry);
        Enter(entry, block.sibling, enclosing, !block.has_code() || !WantedIn(block).empty());
        break;
      }
      case DwarfTag::kCompileUnit:
      case DwarfTag::kPartialUnit:
      case DwarfTag::kSkeletonUnit:
      case DwarfTag::kModule:
      case DwarfTag::kNamespace:
        Enter(entry, unit_.abbreviations->Skip(reader_, entry), kNoFunction, true);
        break;
      default: Enter(entry, unit_.abbreviations->Skip(reader_, entry), enclosing, false); break;
    }
  }

  void VisitFunction(const Abbreviation& entry, std::uint32_t enclosing) {
    Attributes attributes = ReadAttributes(entry);
    std::uint32_t index = kNoFunction;
    if (attributes.has_code()) {
      const std::vector<std::span<const std::uint64_t>> wanted = WantedIn(attributes);
      if (!wanted.empty() && marks_ <= addresses_.size() * kMaxFunctionDepth) {
        index = static_cast<std::uint32_t>(map_.entries.size());
        if (entry.tag == DwarfTag::kInlinedSubroutine) attributes.function.caller = enclosing;
        map_.entries.push_back(attributes.function);
        for (const std::span<const std::uint64_t> part : wanted) {
          const auto first = map_.innermost.begin() + (part.data() - addresses_.data());
          std::fill_n(first, part.size(), index);
          marks_ += part.size();
        }
      }
    }
    Enter(entry, attributes.sibling, index, index != kNoFunction);
  }

  // Goes on with the entry's children, or skips them.
  void Enter(const Abbreviation& entry, std::uint64_t sibling, std::uint32_t function,
             bool is_wanted) {
    if (!entry.has_children) return;
    if (!is_wanted && !visits_all_) {
      if (sibling > reader_.position()) {
        reader_.Seek(static_cast<std::size_t>(sibling));
        return;
      }
      if (skipped_from_ == kNotSkipping) skipped_from_ = scopes_.size();
    }
    scopes_.push_back(function);
  }

  // Goes on behind the children of an entry. False if there is no such entry.
  bool Leave() {
    if (scopes_.empty()) return false;
    scopes_.pop_back();
    if (scopes_.size() == skipped_from_) skipped_from_ = kNotSkipping;
    return true;
  }

  Attributes ReadAttributes(const Abbreviation& entry) {
    Attributes read;
    for (const AbbreviationTable::Attribute& attribute : unit_.abbreviations->AttributesOf(entry)) {
      const FormValue value =
          ReadForm(reader_, attribute.form, attribute.constant, unit_.header.shape);
      switch (attribute.name) {
        case DwarfAttribute::kSibling: read.sibling = value.number; break;
        case DwarfAttribute::kLowPc: read.low_pc = value; break;
        case DwarfAttribute::kHighPc: read.high_pc = value; break;
        case DwarfAttribute::kRanges: read.ranges = value; break;
        case DwarfAttribute::kName: read.function.name = value; break;
        case DwarfAttribute::kLinkageName:
        case DwarfAttribute::kMipsLinkageName: read.function.linkage_name = value; break;
        case DwarfAttribute::kAbstractOrigin:
        case DwarfAttribute::kSpecification:
          read.function.origin = file_.ReferenceOf(unit_, value);
          break;
        case DwarfAttribute::kDeclarationFile: read.function.declaration_file = value.number; break;
        case DwarfAttribute::kDeclarationLine:
          read.function.declaration_line = Clamped(value.number);
          break;
        case DwarfAttribute::kCallFile: read.function.call_file = value.number; break;
        case DwarfAttribute::kCallLine: read.function.call_line = Clamped(value.number); break;
        case DwarfAttribute::kCallColumn: read.function.call_column = Clamped(value.number); break;
        case DwarfAttribute::kGnuDiscriminator:
          read.function.call_discriminator = Clamped(value.number);
          break;
        default: break;
      }
    }
    return read;
  }

  // The parts of the addresses that are in the entry's code.
  std::vector<std::span<const std::uint64_t>> WantedIn(const Attributes& entry) {
    std::vector<std::span<const std::uint64_t>> wanted;
    if (!reader_.ok()) return wanted;
    VisitRanges(file_, unit_, entry.low_pc, entry.high_pc, entry.ranges,
                [&](std::uint64_t begin, std::uint64_t end) {
                  const auto first = std::lower_bound(addresses_.begin(), addresses_.end(), begin);
                  const auto last = std::lower_bound(first, addresses_.end(), end);
                  if (first != last) wanted.push_back({first, last});
                });
    return wanted;
  }

  DwarfFile& file_;
  const DwarfUnit& unit_;
  DwarfReader reader_;
  std::span<const std::uint64_t> addresses_;
  FunctionMap& map_;

  bool visits_all_ = false;
  // The function around the children of each entry that the walk is in.
  std::vector<std::uint32_t> scopes_;
  std::size_t skipped_from_ = kNotSkipping;  // the depth of the entry whose children are skipped
  std::size_t marks_ = 0;                    // bounds the work that a hostile unit can make
};

}  // namespace

FunctionMap FindFunctions(DwarfFile& file, const DwarfUnit& unit,
                          std::span<const std::uint8_t> bytes,
                          std::span<const std::uint64_t> addresses) {
  FunctionMap map;
  map.innermost.assign(addresses.size(), kNoFunction);
  FunctionWalk(file, unit, bytes, addresses, map).Run(false);
  std::vector<std::uint64_t> missing;
  std::vector<std::size_t> places;
  for (std::size_t i = 0; i < addresses.size(); ++i) {
    if (map.innermost[i] != kNoFunction) continue;
    missing.push_back(addresses[i]);
    places.push_back(i);
  }
  if (missing.empty()) return map;
  // A function's entry may be below that of another function, or of a type.
  FunctionMap rest;
  rest.innermost.assign(missing.size(), kNoFunction);
  FunctionWalk(file, unit, bytes, missing, rest).Run(true);
  const auto offset = static_cast<std::uint32_t>(map.entries.size());
  for (FunctionEntry& entry : rest.entries) {
    if (entry.caller != kNoFunction) entry.caller += offset;
    map.entries.push_back(entry);
  }
  for (std::size_t i = 0; i < missing.size(); ++i) {
    if (rest.innermost[i] != kNoFunction) map.innermost[places[i]] = rest.innermost[i] + offset;
  }
  return map;
}

}  // namespace strobe::internal
