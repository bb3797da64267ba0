#include "strobe/process/process_names.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <unordered_map>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "strobe/core/profile.h"
#include "strobe/core/symbols.h"
#include "strobe/process/mapping.h"

namespace strobe {
namespace {

// A profile of no samples, whose frames are the addresses.
class AddressesToName {
 public:
  AddressesToName(const ProcessCode& code, std::span<const Address> addresses) {
    std::unordered_map<const ProcessModule*, std::uint32_t> numbers;
    for (const Address address : addresses) {
      const ProcessModule* const module = code.Find(address);
      if (module == nullptr) {
        profile_.frames.push_back({address, Frame::kNoModule});
        continue;
      }
      const auto next = static_cast<std::uint32_t>(profile_.modules.size());
      const auto [place, is_new] = numbers.try_emplace(module, next);
      if (is_new) profile_.modules.push_back(ModuleToName(*module));
      const Address shift = profile_.modules[place->second].start - module->module.start;
      profile_.frames.push_back({address + shift, place->second});
    }
  }

  [[nodiscard]] const Profile& profile() const { return profile_; }
  [[nodiscard]] AddressName NameOf(std::size_t number, const Symbols& symbols) const {
    AddressName name;
    const Frame& frame = profile_.frames[number];
    if (frame.module != Frame::kNoModule) {
      const Module& module = profile_.modules[frame.module];
      name.module = module.path;
      name.file_offset = frame.address - module.start + module.file_offset;
    }
    const FrameSymbols found =
        number < symbols.frames.size() ? symbols.frames[number] : FrameSymbols();
    for (std::uint32_t i = 0; i < found.inlined_count; ++i)
      name.functions.push_back(NameOf(symbols.inlined[found.inlined_begin + i], symbols));
    if (found.function != FrameSymbols::kNone) {
      name.functions.push_back(NameOf({found.function, found.line, found.column}, symbols));
    } else {
      name.functions.push_back(
          {.function = absl::StrCat("0x", absl::Hex(frame.address)), .resolved = false});
    }
    return name;
  }

 private:
  static NamedFunction NameOf(const SourceLine& place, const Symbols& symbols) {
    const FunctionSymbol& function = symbols.functions[place.function];
    return {.function = function.name,
            .file = function.file,
            .line = place.line,
            .column = place.column,
            .resolved = function.resolved};
  }

  Profile profile_;
};

}  // namespace

Module ModuleToName(const ProcessModule& module) {
  Module named = module.module;
  if (named.kind != ModuleKind::kVdso || module.image_number == 0) return named;
  const absl::StatusOr<std::vector<Mapping>> own = ReadMaps("self");
  if (!own.ok()) return named;
  const auto vdso = std::ranges::find(*own, "[vdso]", &Mapping::path);
  if (vdso == own->end()) return named;
  const Address shift = vdso->start - named.start;
  named.start += shift;
  named.limit += shift;
  named.load_bias += shift;
  return named;
}

std::vector<AddressName> ProcessNames::Name(const ProcessCode& code,
                                            std::span<const Address> addresses) {
  const AddressesToName asked(code, addresses);
  const absl::StatusOr<Symbols> found = symbolizer_.Symbolize(asked.profile());
  const Symbols symbols = found.ok() ? *found : Symbols();
  std::vector<AddressName> names;
  names.reserve(addresses.size());
  for (std::size_t i = 0; i < addresses.size(); ++i) names.push_back(asked.NameOf(i, symbols));
  return names;
}

}  // namespace strobe
