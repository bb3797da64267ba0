#include "code_samples.h"

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <string_view>
#include <utility>

#include "../../symbolize/elf/elf_images.h"
#include "../../symbolize/images/image_names.h"
#include "../../symbolize/names/source_frames.h"
#include "absl/container/flat_hash_map.h"
#include "absl/hash/hash.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "code_ranges.h"
#include "strobe/base/amounts.h"

namespace strobe::internal {
namespace {

constexpr std::uint32_t kNoBuild = 0xFFFFFFFF;
// GCC and Clang move the code of a function that they expect to be rare behind such a symbol.
constexpr std::string_view kColdPart = ".cold";

std::string_view FileName(std::string_view path) {
  return path.substr(path.find_last_of("/\\") + 1);
}

// The samples of one build, by the position of their code in its file.
class BuildPlaces {
 public:
  BuildPlaces(Module module, bool is_current) : module_(std::move(module)) {
    samples_.build_id = module_.build_id;
    samples_.is_current = is_current;
  }

  [[nodiscard]] const Module& module() const { return module_; }
  [[nodiscard]] bool is_current() const { return samples_.is_current; }

  std::uint32_t Number(std::uint64_t position, std::uint32_t frame) {
    const auto next = static_cast<std::uint32_t>(places().size());
    const auto [found, is_new] = numbers_.try_emplace(position, next);
    if (is_new) {
      places().emplace_back();
      frames_.push_back(frame);
    }
    return found->second;
  }
  void AddAmount(std::uint32_t place, std::int64_t amount) {
    std::int64_t& sum = places()[place].amount;
    sum = SaturatedSum(sum, amount);
  }
  void AddCall(std::uint32_t caller, std::uint32_t callee, std::int64_t amount) {
    std::int64_t& sum = calls_[{caller, callee}];
    sum = SaturatedSum(sum, amount);
  }

  BuildSamples Finish(const LoadedProfile& loaded, const SymbolFiles& files,
                      const SymbolSearch& search) {
    for (const auto& [ends, amount] : calls_)
      samples_.code.calls.push_back(
          {.caller = ends.first, .callee = ends.second, .amount = amount});
    samples_.has_file = ReadFrames(files, search);
    if (!samples_.has_file) TakeFrames(loaded.symbols);
    return std::move(samples_);
  }

 private:
  std::vector<CodeSamples::Place>& places() { return samples_.code.places; }

  // A function with samples, by addresses in the file.
  struct SampledFunction {
    std::uint64_t end = 0;
    std::int64_t amount = 0;
  };
  using SampledFunctions = std::map<std::uint64_t, SampledFunction>;

  // By the build's own debug information. False if that is not there.
  bool ReadFrames(const SymbolFiles& files, const SymbolSearch& search) {
    std::map<std::uint64_t, std::uint32_t> places_at = Addresses(files, search);
    if (places_at.empty()) return false;
    const SampledFunctions functions = AddEntries(files, search, places_at);
    std::vector<std::uint64_t> addresses;
    addresses.reserve(places_at.size());
    for (const auto& [address, place] : places_at) addresses.push_back(address);
    const auto take = [&](std::uint64_t address, std::span<const SourceFrame> frames) {
      if (frames.size() <= kMaxPlaceFrames)
        places()[places_at[address]].frames.assign(frames.begin(), frames.end());
    };
    if (!FindSourceFrames(module_, addresses, files, search, take)) return false;
    CountBytes(functions, files, search);
    return true;
  }

  static std::size_t HashOf(std::span<const SourceFrame> frames) {
    std::size_t hash = 0;
    for (const SourceFrame& frame : frames)
      hash = absl::HashOf(hash, frame.function, frame.line, frame.discriminator);
    return hash;
  }

  void CountBytes(const SampledFunctions& functions, const SymbolFiles& files,
                  const SymbolSearch& search) {
    std::vector<CodeRange> ranges;
    for (const auto& [begin, sampled] : functions) {
      if (sampled.amount != 0)
        ranges.push_back({static_cast<double>(sampled.amount), begin, sampled.end});
    }
    const std::vector<std::uint64_t> addresses = AddressesIn(std::move(ranges));
    absl::flat_hash_map<std::size_t, std::uint64_t> bytes;
    FindSourceFrames(module_, addresses, files, search,
                     [&](std::uint64_t /*address*/, std::span<const SourceFrame> frames) {
                       ++bytes[HashOf(frames)];
                     });
    for (CodeSamples::Place& place : places()) {
      const auto found = bytes.find(HashOf(place.frames));
      if (found != bytes.end() && !place.frames.empty()) place.code_bytes = found->second;
    }
  }

  // The places by their addresses in the file. Empty if no file of the build says where it has its
  // code: one with debug information alone may not.
  std::map<std::uint64_t, std::uint32_t> Addresses(const SymbolFiles& files,
                                                   const SymbolSearch& search) {
    std::map<std::uint64_t, std::uint32_t> places_at;
    VisitElfImages(module_, files, search, [&](ElfImage&& image) {
      for (const auto& [position, place] : numbers_) {
        if (const std::optional<std::uint64_t> address = image.file.AddressAt(position))
          places_at.emplace(*address, place);
      }
      return places_at.empty();
    });
    return places_at;
  }

  // Names the places by their symbols, and adds one at the begin of each function that has a place.
  // Returns these functions.
  SampledFunctions AddEntries(const SymbolFiles& files, const SymbolSearch& search,
                              std::map<std::uint64_t, std::uint32_t>& places_at) {
    SampledFunctions sampled;
    const FunctionTable functions = ReadElfNames(module_, files, search).functions;
    std::map<std::uint64_t, CodeSamples::Place> begins;
    for (const auto& [address, place] : places_at) {
      const FunctionTable::Function* const function = functions.FindFunction(address);
      if (function == nullptr) continue;
      SampledFunction& named = sampled[function->address];
      named.end = function->end;
      named.amount = SaturatedSum(named.amount, places()[place].amount);
      places()[place].symbol = functions.NameOf(*function);
      places()[place].symbol_bytes = function->end - function->address;
      begins.try_emplace(function->address,
                         CodeSamples::Place{.symbol = places()[place].symbol,
                                            .symbol_bytes = places()[place].symbol_bytes});
    }
    for (const auto& [address, begin] : begins) {
      const auto next = static_cast<std::uint32_t>(places().size());
      const auto [found, is_new] = places_at.try_emplace(address, next);
      if (is_new) places().push_back(begin);
      places()[found->second].is_entry = begin.symbol.find(kColdPart) == std::string::npos;
    }
    return sampled;
  }

  // By what the profile says of its frames.
  void TakeFrames(const Symbols& symbols) {
    for (std::size_t place = 0; place < frames_.size(); ++place) {
      if (frames_[place] >= symbols.frames.size()) continue;
      const FrameSymbols& frame = symbols.frames[frames_[place]];
      if (frame.function == FrameSymbols::kNone || frame.inlined_count >= kMaxPlaceFrames) continue;
      const auto add = [&](std::uint32_t number, std::uint32_t line) {
        const FunctionSymbol& function = symbols.functions[number];
        places()[place].frames.push_back({.function = function.system_name,
                                          .file = function.file,
                                          .line = line,
                                          .declaration_line = function.line});
      };
      for (std::uint32_t i = 0; i < frame.inlined_count; ++i) {
        const SourceLine& line = symbols.inlined[frame.inlined_begin + i];
        add(line.function, line.line);
      }
      add(frame.function, frame.line);
      std::string& symbol = places()[place].symbol;
      if (symbol.empty()) symbol = symbols.functions[frame.function].system_name;
    }
  }

  Module module_;
  BuildSamples samples_;
  absl::flat_hash_map<std::uint64_t, std::uint32_t> numbers_;
  std::vector<std::uint32_t> frames_;  // of the profile, for each place that a sample has
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::int64_t> calls_;
};

// Gives each frame of a profile that is in the binary its place.
class Collector {
 public:
  Collector(const LoadedProfile& loaded, Module binary)
      : loaded_(loaded), profile_(loaded.profile), binary_(std::move(binary)) {
    for (const Module& module : profile_.modules) build_of_.push_back(BuildOf(module));
  }

  [[nodiscard]] bool has_builds() const { return !builds_.empty(); }

  // Adds the amounts of a column, and returns their sum.
  std::int64_t Add(std::size_t column) {
    std::vector<std::int64_t> amounts(profile_.stacks.size());  // of each node as a leaf
    std::int64_t whole = 0;
    for (std::size_t i = 0; i < profile_.samples.size(); ++i) {
      const std::int64_t amount = std::max<std::int64_t>(profile_.Values(i)[column], 0);
      std::int64_t& leaf = amounts[profile_.samples[i].stack];
      leaf = SaturatedSum(leaf, amount);
      whole = SaturatedSum(whole, amount);
    }
    std::vector<PlaceNumber> places(profile_.stacks.size());
    for (std::size_t node = 1; node < places.size(); ++node) {
      places[node] = PlaceOf(profile_.stacks[node].frame);
      if (places[node].build != kNoBuild && amounts[node] != 0)
        builds_[places[node].build].AddAmount(places[node].place, amounts[node]);
    }
    // From here on, also of those below each node. A parent stands before its children.
    for (std::size_t node = places.size(); node-- > 1;) {
      const std::uint32_t parent = profile_.stacks[node].parent;
      if (amounts[node] == 0) continue;
      amounts[parent] = SaturatedSum(amounts[parent], amounts[node]);
      const PlaceNumber caller = places[parent];
      if (caller.build != kNoBuild && caller.build == places[node].build)
        builds_[caller.build].AddCall(caller.place, places[node].place, amounts[node]);
    }
    return whole;
  }

  std::vector<BuildSamples> Finish(const SymbolFiles& files, const SymbolSearch& search) {
    std::vector<BuildSamples> finished;
    finished.reserve(builds_.size());
    for (BuildPlaces& build : builds_) finished.push_back(build.Finish(loaded_, files, search));
    return finished;
  }

 private:
  struct PlaceNumber {
    std::uint32_t build = kNoBuild;
    std::uint32_t place = 0;
  };

  std::uint32_t BuildOf(const Module& module) {
    if (!module.has_file()) return kNoBuild;
    const bool has_name = FileName(module.path) == FileName(binary_.path);
    const bool has_ids = !module.build_id.empty() && !binary_.build_id.empty();
    const bool is_current = has_ids ? module.build_id == binary_.build_id : has_name;
    if (!is_current && !has_name) return kNoBuild;
    for (std::uint32_t i = 0; i < builds_.size(); ++i) {
      if (is_current ? builds_[i].is_current() : builds_[i].module().build_id == module.build_id)
        return i;
    }
    builds_.emplace_back(is_current ? binary_ : module, is_current);
    return static_cast<std::uint32_t>(builds_.size() - 1);
  }

  PlaceNumber PlaceOf(std::uint32_t number) {
    const Frame& frame = profile_.frames[number];
    if (frame.module >= profile_.modules.size() || build_of_[frame.module] == kNoBuild) return {};
    const Module& module = profile_.modules[frame.module];
    if (frame.address < module.start) return {};
    const std::uint64_t position = frame.address - module.start + module.file_offset;
    const std::uint32_t build = build_of_[frame.module];
    return {.build = build, .place = builds_[build].Number(position, number)};
  }

  const LoadedProfile& loaded_;
  const Profile& profile_;
  const Module binary_;
  std::vector<BuildPlaces> builds_;
  std::vector<std::uint32_t> build_of_;  // of each module
};

// Of a sample, by the column that counts them. Without one, a row is a sample.
double MeanAmount(const Profile& profile, std::int64_t whole) {
  const auto counts = std::ranges::find(profile.value_types, "samples", &ValueType::type);
  double samples = 0;
  for (std::size_t i = 0; i < profile.samples.size(); ++i) {
    const auto column = static_cast<std::size_t>(counts - profile.value_types.begin());
    samples += counts == profile.value_types.end()
                   ? 1
                   : static_cast<double>(std::max<std::int64_t>(profile.Values(i)[column], 0));
  }
  return whole > 0 && samples > 0 ? static_cast<double>(whole) / samples : 1;
}

}  // namespace

absl::StatusOr<Module> ModuleOf(const std::string& path, const SymbolFiles& files) {
  const std::optional<ElfImage> image = OpenElfImage(path, files);
  if (!image.has_value())
    return absl::NotFoundError(absl::StrCat(path, " is no ELF file for x86-64 or aarch64"));
  Module module;
  module.path = path;
  module.build_id = image->file.build_id();
  for (const ElfFile::Segment& segment : image->file.segments()) {
    if (!segment.is_code()) continue;
    module.start = segment.address;
    module.limit = segment.address + segment.memory_size;
    module.file_offset = segment.offset;
    break;
  }
  return module;
}

absl::StatusOr<BinarySamples> CollectCodeSamples(const LoadedProfile& loaded, std::size_t column,
                                                 const Module& binary, const SymbolFiles& files,
                                                 const SymbolSearch& search) {
  Collector collector(loaded, binary);
  BinarySamples samples{.whole = collector.Add(column), .builds = {}};
  samples.sample_amount = MeanAmount(loaded.profile, samples.whole);
  samples.builds = collector.Finish(files, search);
  std::erase_if(samples.builds,
                [](const BuildSamples& build) { return build.code.places.empty(); });
  if (samples.builds.empty()) {
    return absl::NotFoundError(absl::StrCat(
        "no sample has an address in ", binary.path,
        ": is this the program, or the library, that was profiled? (strobe info lists modules)"));
  }
  return samples;
}

}  // namespace strobe::internal
