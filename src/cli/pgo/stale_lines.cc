#include "stale_lines.h"

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "../../symbolize/images/image_names.h"
#include "../../symbolize/names/source_frames.h"
#include "code_ranges.h"
#include "code_samples.h"

namespace strobe::internal {
namespace {

void AddNames(const FunctionSamples& function, std::set<std::string, std::less<>>& names) {
  for (const auto& [location, functions] : function.inlined) {
    for (const auto& [name, inlined] : functions) {
      names.insert(name);
      AddNames(inlined, names);
    }
  }
}

void KeepLines(FunctionSamples& function, const std::string& name, const FunctionLocations& known) {
  const auto found = known.find(name);
  if (found != known.end()) {
    const auto is_unknown = [&](const auto& located) {
      return !found->second.contains(located.first);
    };
    std::erase_if(function.lines, is_unknown);
    std::erase_if(function.inlined, is_unknown);
  }
  for (auto& [location, line] : function.lines)
    std::erase_if(line.calls, [&](const auto& call) { return !known.contains(call.first); });
  for (auto& [location, functions] : function.inlined) {
    for (auto& [inlined_name, inlined] : functions) KeepLines(inlined, inlined_name, known);
  }
}

}  // namespace

FunctionLocations LocationsOf(const FunctionSamplesMap& samples, const Module& binary,
                              const SymbolFiles& files, const SymbolSearch& search,
                              DiscriminatorKind kind) {
  std::set<std::string, std::less<>> names;
  for (const auto& [name, function] : samples) {
    names.insert(name);
    AddNames(function, names);
  }
  const FunctionTable functions = ReadElfNames(binary, files, search).functions;
  std::vector<CodeRange> compared;
  for (const FunctionTable::Function& function : functions.functions()) {
    const auto name = names.find(functions.NameOf(function));
    if (name == names.end()) continue;
    const auto found = samples.find(*name);
    const double total = found == samples.end() ? 0 : found->second.total();
    compared.push_back({total, function.address, function.end});
  }
  const std::vector<std::uint64_t> addresses = AddressesIn(std::move(compared));
  FunctionLocations locations;
  FindSourceFrames(binary, addresses, files, search,
                   [&](std::uint64_t /*address*/, std::span<const SourceFrame> frames) {
                     for (const SourceFrame& frame : frames) {
                       if (IsLocated(frame))
                         locations[frame.function].insert(LocationIn(frame, kind));
                     }
                   });
  return locations;
}

void KeepKnown(FunctionSamplesMap& samples, const FunctionLocations& known) {
  std::erase_if(samples, [&](const auto& named) { return !known.contains(named.first); });
  for (auto& [name, function] : samples) KeepLines(function, name, known);
}

}  // namespace strobe::internal
