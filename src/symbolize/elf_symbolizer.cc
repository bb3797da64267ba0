#include "strobe/symbolize/elf_symbolizer.h"

#include <algorithm>
#include <list>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "byte_source.h"
#include "demangle.h"
#include "elf_file.h"
#include "module_files.h"
#include "pe_symbols.h"
#include "strobe/core/thread_info.h"

namespace strobe {
namespace {

using internal::ElfFile;
using internal::FileSource;
using internal::FunctionTable;
using internal::OpenFor;

// Of all names in a profile; further functions go without. Only hostile images have so much to say.
constexpr std::size_t kMaxNameBytes = std::size_t{256} << 20;

bool IsWindowsImage(const Module& module) { return module.format == ImageFormat::kPe; }

// What an image calls its code. Symbols come first: they are what somebody wrote.
struct ImageNames {
  FunctionTable functions;
  FunctionTable stubs;
  // Whether the next profile need not look again.
  bool is_final = true;

  [[nodiscard]] std::string_view Find(std::uint64_t address) const {
    const std::string_view name = functions.Find(address);
    return name.empty() ? stubs.Find(address) : name;
  }
  [[nodiscard]] bool empty() const { return functions.empty() && stubs.empty(); }
  [[nodiscard]] std::size_t memory_bytes() const {
    return functions.memory_bytes() + stubs.memory_bytes();
  }
};

// The names that the candidates hold, in the order of preference: functions of the first with full
// symbols, else of the first with any; stubs of the first that has the code of its linkage table,
// which a file of separate symbols has not.
ImageNames ReadNames(const Module& module, const std::vector<std::string>& paths) {
  struct Image {
    std::unique_ptr<FileSource> source;
    ElfFile file;
  };
  std::vector<Image> images;
  for (const std::string& path : paths) {
    std::unique_ptr<FileSource> source = FileSource::Open(path);
    if (source == nullptr) continue;
    std::optional<ElfFile> file = OpenFor(module, *source);
    if (!file.has_value()) continue;
    images.push_back({std::move(source), *std::move(file)});
    if (images.back().file.symbols() == ElfFile::Symbols::kFull) break;
  }
  ImageNames names;
  const auto best = std::max_element(
      images.begin(), images.end(),
      [](const Image& a, const Image& b) { return a.file.symbols() < b.file.symbols(); });
  if (best != images.end()) names.functions = best->file.ReadFunctions();
  for (const Image& image : images) {
    if (names.stubs.empty()) names.stubs = image.file.ReadLinkageStubs(names.functions);
  }
  names.is_final = !names.empty();  // else the file may be there the next time
  return names;
}

// Of a file that can be read, final even where there are none: a file that was changed is another
// one.
ImageNames ReadWindowsNames(const Module& module, const ElfSymbolizerOptions& options) {
  ImageNames names;
  const std::unique_ptr<FileSource> source = FileSource::Open(module.path);
  names.is_final = source != nullptr;
  if (source == nullptr) return names;
  const std::optional<internal::PeFile> file = internal::PeFile::Open(*source, module.build_id);
  if (!file.has_value()) return names;
  names.functions = file->ReadFunctions();
  if (names.functions.empty() && options.use_system_library) {
    std::optional<FunctionTable> functions = file->ReadDebugFunctions(module.path);
    names.is_final = functions.has_value();
    if (functions.has_value()) names.functions = *std::move(functions);
  }
  if (names.functions.empty()) names.functions = file->ReadExports();
  return names;
}

ImageNames ReadNames(const Module& module, const ElfSymbolizerOptions& options) {
  if (IsWindowsImage(module)) return ReadWindowsNames(module, options);
  if (module.kind == ModuleKind::kVdso) {
    const internal::SpanSource source(
        internal::OwnVdso(module.load_bias, module.start, module.limit));
    const std::optional<ElfFile> file = OpenFor(module, source);
    return {.functions = file.has_value() ? file->ReadFunctions() : FunctionTable(),
            .stubs = {},
            .is_final = file.has_value()};
  }
  return ReadNames(module, internal::PathsOf(module, options.debug_directory));
}

// What names a module's symbols: its build id, or the file with its place where there is none. What
// stands for the build id of a Windows image may be another one's, too, if that was linked in the
// same second.
std::string CacheKey(const Module& module) {
  if (!module.build_id.empty() && !IsWindowsImage(module)) return module.build_id;
  const std::unique_ptr<FileSource> source = FileSource::Open(module.path);
  return absl::StrCat(module.path, "\n", source == nullptr ? "" : source->identity(), "\n",
                      module.start - module.load_bias, "\n", module.file_offset);
}

std::string Hex(Address address) { return absl::StrCat("0x", absl::Hex(address)); }

std::string UnresolvedName(const Module& module, Address address) {
  const std::size_t slash = module.has_file()
                                ? module.path.find_last_of(IsWindowsImage(module) ? "/\\" : "/")
                                : std::string::npos;
  return absl::StrCat(
      ValidUtf8(slash == std::string::npos ? module.path : module.path.substr(slash + 1)), "+",
      Hex(address - module.load_bias));
}

// Symbols::functions without repetition.
class FunctionList {
 public:
  std::uint32_t Resolved(std::string_view system_name) {
    const auto [place, is_new] = resolved_.try_emplace(std::string(system_name), Next());
    if (!is_new) return place->second;
    name_bytes_ += system_name.size();
    functions_.push_back({demangler_.Demangle(system_name), ValidUtf8(system_name), true});
    return place->second;
  }
  std::uint32_t Unresolved(const std::string& name) {
    const auto [place, is_new] = unresolved_.try_emplace(name, Next());
    if (is_new) functions_.push_back({name, name, false});
    return place->second;
  }
  // Of the resolved ones, as they stand in the images.
  [[nodiscard]] std::size_t name_bytes() const { return name_bytes_; }
  std::vector<FunctionSymbol> Take() { return std::move(functions_); }

 private:
  [[nodiscard]] std::uint32_t Next() const { return static_cast<std::uint32_t>(functions_.size()); }

  internal::Demangler demangler_;
  std::size_t name_bytes_ = 0;
  std::vector<FunctionSymbol> functions_;
  absl::flat_hash_map<std::string, std::uint32_t> resolved_;
  absl::flat_hash_map<std::string, std::uint32_t> unresolved_;
};

}  // namespace

// Tables by module, the most recently used in front.
class ElfSymbolizer::Cache {
 public:
  // Valid until Trim, and until the next call.
  const ImageNames& Get(const Module& module, const ElfSymbolizerOptions& options) {
    if (module.kind == ModuleKind::kGeneratedCode) return unkept_ = {};  // no file holds it
    std::string key = CacheKey(module);
    if (const auto found = places_.find(key); found != places_.end()) {
      entries_.splice(entries_.begin(), entries_, found->second);
      return entries_.front().names;
    }
    ImageNames names = ReadNames(module, options);
    if (!names.is_final) return unkept_ = std::move(names);
    entries_.push_front({key, std::move(names)});
    bytes_ += entries_.front().memory_bytes();
    places_[std::move(key)] = entries_.begin();
    return entries_.front().names;
  }

  // The last one that was used stays, however large.
  void Trim(std::size_t limit_bytes) {
    unkept_ = {};
    while (bytes_ > limit_bytes && entries_.size() > 1) {
      bytes_ -= entries_.back().memory_bytes();
      places_.erase(entries_.back().key);
      entries_.pop_back();
    }
  }

  [[nodiscard]] std::size_t bytes() const { return bytes_; }

 private:
  struct Entry {
    std::string key;
    ImageNames names;

    [[nodiscard]] std::size_t memory_bytes() const {
      return sizeof(Entry) + 2 * key.size() + names.memory_bytes();
    }
  };
  std::list<Entry> entries_;
  absl::flat_hash_map<std::string, std::list<Entry>::iterator> places_;
  std::size_t bytes_ = 0;
  ImageNames unkept_;
};

ElfSymbolizer::ElfSymbolizer(ElfSymbolizerOptions options)
    : options_(std::move(options)), cache_(std::make_unique<Cache>()) {}
ElfSymbolizer::~ElfSymbolizer() = default;
ElfSymbolizer::ElfSymbolizer(ElfSymbolizer&&) noexcept = default;
ElfSymbolizer& ElfSymbolizer::operator=(ElfSymbolizer&&) noexcept = default;

std::size_t ElfSymbolizer::cached_bytes() const { return cache_->bytes(); }

absl::StatusOr<Symbols> ElfSymbolizer::Symbolize(const Profile& profile) {
  Symbols symbols;
  symbols.frames.resize(profile.frames.size());
  FunctionList functions;
  // Module by module, so that one table at a time is needed.
  std::vector<std::vector<std::uint32_t>> frames_of(profile.modules.size());
  for (std::uint32_t i = 0; i < profile.frames.size(); ++i) {
    const Frame& frame = profile.frames[i];
    if (frame.is_pseudo()) continue;
    if (frame.module < profile.modules.size()) {
      frames_of[frame.module].push_back(i);
    } else {
      symbols.frames[i].function = functions.Unresolved(Hex(frame.address));
    }
  }
  for (std::size_t m = 0; m < frames_of.size(); ++m) {
    if (frames_of[m].empty()) continue;
    const Module& module = profile.modules[m];
    const ImageNames& names = cache_->Get(module, options_);
    if (names.functions.is_partial()) symbols.partly_named = module.path;
    for (const std::uint32_t i : frames_of[m]) {
      const Address address = profile.frames[i].address;
      const std::string_view name = names.Find(address - module.load_bias);
      const bool is_named = !name.empty() && functions.name_bytes() <= kMaxNameBytes;
      symbols.frames[i].function = !is_named ? functions.Unresolved(UnresolvedName(module, address))
                                             : functions.Resolved(name);
    }
    cache_->Trim(options_.cache_bytes);
  }
  symbols.functions = functions.Take();
  return symbols;
}

}  // namespace strobe
