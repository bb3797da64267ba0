// symbolize: names and lines from the files of this machine, found by their build ids.
#include <cstdint>
#include <optional>
#include <utility>

#include "../../symbolize/elf/elf_images.h"
#include "../../symbolize/images/kept_files.h"
#include "../../symbolize/pe/pe_images.h"
#include "command.h"
#include "debuginfod.h"
#include "profile_symbolizer.h"
#include "strobe/core/thread_info.h"

namespace strobe::internal {
namespace {

// Tables and lines kept while one profile is symbolized.
constexpr std::size_t kSymbolBytes = std::size_t{1} << 30;

// pprof files do not say how far a module lies from the addresses in its file. The file does.
void FindLoadBias(Module& module, const SymbolFiles& files, const SymbolSearch& search) {
  if (!module.has_file()) return;
  if (const PeImageSearch pe = FindPeImage(module, files, search); pe.image.has_value()) {
    const std::optional<std::uint64_t> address = pe.image->file.AddressAt(module.file_offset);
    if (!address.has_value()) return;
    module.format = ImageFormat::kPe;
    module.load_bias = module.start - *address;
    return;
  }
  const auto adopt = [&](const ElfImage& image) {
    const std::optional<std::uint64_t> address = image.file.AddressAt(module.file_offset);
    if (address.has_value()) module.load_bias = module.start - *address;
    return !address.has_value();
  };
  if (!module.build_id.empty()) {
    VisitElfImages(module, files, search, adopt);
  } else if (KeptFileOf(module) != nullptr) {
    return;  // the recorder that keeps the file has found the bias in it
  } else if (const std::optional<ElfImage> image = OpenElfImage(module.path, files)) {
    adopt(*image);
  }
}

ImageSymbolizerOptions OptionsOf(SymbolMode mode, const SymbolSearch& search) {
  ImageSymbolizerOptions options{.mode = mode, .cache_bytes = kSymbolBytes};
  options.search = search;
  return options;
}

bool HasLines(const FrameSymbols& names) { return names.line != 0 || names.inlined_count != 0; }

// Takes over what has been found; frames that it says nothing of keep the names that they have.
// With `only_lines`, only frames with lines are taken over.
void AdoptSymbols(const Symbols& found, LoadedProfile& loaded, bool only_lines) {
  Symbols& symbols = loaded.symbols;
  symbols.frames.resize(loaded.profile.frames.size());
  const auto functions = static_cast<std::uint32_t>(symbols.functions.size());
  const auto lines = static_cast<std::uint32_t>(symbols.inlined.size());
  for (FunctionSymbol function : found.functions) {
    for (std::string* const text : {&function.name, &function.system_name, &function.file})
      *text = SanitizedText(*text, text->size());
    symbols.functions.push_back(std::move(function));
  }
  for (SourceLine line : found.inlined) {
    line.function += functions;
    symbols.inlined.push_back(line);
  }
  for (std::size_t i = 0; i < found.frames.size(); ++i) {
    FrameSymbols names = found.frames[i];
    const bool is_new = symbols.frames[i].function == FrameSymbols::kNone ||
                        !symbols.functions[symbols.frames[i].function].resolved;
    if (names.function == FrameSymbols::kNone || loaded.profile.frames[i].address == 0) continue;
    if (!is_new && !found.functions[names.function].resolved) continue;
    if (only_lines && !HasLines(names)) continue;
    names.function += functions;
    names.inlined_begin += lines;
    symbols.frames[i] = names;
  }
}

}  // namespace

SymbolSearch SearchIn(const std::vector<std::string>& directories) {
  SymbolSearch search;
  search.image_directories = directories;
  for (const std::string& directory : directories) search.debug_directories.push_back(directory);
  const std::string cache =
      DebuginfodCache([](const char* name) { return NativePlatform::EnvironmentVariable(name); });
  if (!cache.empty()) search.debuginfod_caches.push_back(cache);
  search.fetch = DebuginfodFetcher();
  return search;
}

ProfileSymbolizer::ProfileSymbolizer(const ImageSymbolizerOptions& options)
    : search_(options.search), symbolizer_(options) {}

absl::Status ProfileSymbolizer::Symbolize(LoadedProfile& loaded) {
  for (Module& module : loaded.profile.modules)
    FindLoadBias(module, NativePlatform::Files(), search_);
  const absl::StatusOr<Symbols> found = symbolizer_.Symbolize(loaded.profile);
  if (found.ok()) AdoptSymbols(*found, loaded, false);
  return found.status();
}

absl::Status ProfileSymbolizer::AddLines(LoadedProfile& loaded) {
  const absl::StatusOr<Symbols> found = symbolizer_.Symbolize(loaded.profile);
  if (found.ok()) AdoptSymbols(*found, loaded, true);
  return found.status();
}

absl::Status SymbolizeProfile(LoadedProfile& loaded, const SymbolSearch& search) {
  return ProfileSymbolizer(OptionsOf(SymbolMode::kFull, search)).Symbolize(loaded);
}

absl::Status SymbolizeQuickly(LoadedProfile& loaded) {
  SymbolSearch search = SearchIn({});
  search.fetch = nullptr;
  absl::Status status = ProfileSymbolizer(OptionsOf(SymbolMode::kNames, search)).Symbolize(loaded);
  if (!status.ok()) return status;
  search.debug_directories.clear();
  search.debuginfod_caches.clear();
  return ProfileSymbolizer(OptionsOf(SymbolMode::kFull, search)).AddLines(loaded);
}

}  // namespace strobe::internal
