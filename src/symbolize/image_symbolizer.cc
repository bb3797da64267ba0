#include "strobe/symbolize/image_symbolizer.h"

#include <list>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "demangle.h"
#include "image_names.h"
#include "strobe/core/thread_info.h"

namespace strobe {
namespace {

using internal::ImageNames;

// Of all names in a profile; further functions have no name. Only hostile images have so much text.
constexpr std::size_t kMaxNameBytes = std::size_t{256} << 20;

ImageNames ReadNames(const Module& module, const SymbolFiles& files,
                     const ImageSymbolizerOptions& options) {
  switch (module.format) {
    case ImageFormat::kElf: return internal::ReadElfNames(module, files, options.debug_directory);
    case ImageFormat::kPe: return internal::ReadPeNames(module, files, options.use_system_library);
  }
  return {};
}

// Identifies a module's symbols: by its build id, or without one by the file and its place. Two PE
// images that were linked in the same second may have the same build id.
std::string CacheKey(const Module& module, const SymbolFiles& files) {
  if (!module.build_id.empty() && module.format == ImageFormat::kElf) return module.build_id;
  const std::unique_ptr<FileSource> source = files.Open(module.path);
  return absl::StrCat(module.path, "\n", source == nullptr ? "" : source->identity(), "\n",
                      module.start - module.load_bias, "\n", module.file_offset);
}

std::string Hex(Address address) { return absl::StrCat("0x", absl::Hex(address)); }

std::string UnresolvedName(const Module& module, Address address) {
  const std::size_t slash =
      module.has_file() ? module.path.find_last_of(module.format == ImageFormat::kPe ? "/\\" : "/")
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
    functions_.push_back(
        {.name = demangler_.Demangle(system_name), .system_name = ValidUtf8(system_name)});
    return place->second;
  }
  std::uint32_t Unresolved(const std::string& name) {
    const auto [place, is_new] = unresolved_.try_emplace(name, Next());
    if (is_new) functions_.push_back({.name = name, .system_name = name, .resolved = false});
    return place->second;
  }
  // The resolved names, as the images have them.
  [[nodiscard]] std::size_t name_bytes() const { return name_bytes_; }
  std::vector<FunctionSymbol> Take() { return std::move(functions_); }

 private:
  [[nodiscard]] std::uint32_t Next() const { return static_cast<std::uint32_t>(functions_.size()); }

  internal::Demangler demangler_;
  std::size_t name_bytes_ = 0;
  std::vector<FunctionSymbol> functions_;
  std::unordered_map<std::string, std::uint32_t> resolved_;
  std::unordered_map<std::string, std::uint32_t> unresolved_;
};

}  // namespace

// Tables by module, the most recently used in front.
class ImageSymbolizer::Cache {
 public:
  // Valid until Trim, and until the next call.
  const ImageNames& Get(const Module& module, const SymbolFiles& files,
                        const ImageSymbolizerOptions& options) {
    if (module.kind == ModuleKind::kGeneratedCode) return unkept_ = {};  // no file holds it
    std::string key = CacheKey(module, files);
    if (const auto found = places_.find(key); found != places_.end()) {
      entries_.splice(entries_.begin(), entries_, found->second);
      return entries_.front().names;
    }
    ImageNames names = ReadNames(module, files, options);
    if (!names.is_final) return unkept_ = std::move(names);
    // All that may throw comes first, so that no entry lacks its place in the list.
    std::list<Entry> entry;
    entry.push_front({key, std::move(names)});
    places_.emplace(std::move(key), entry.begin());
    entries_.splice(entries_.begin(), entry);
    bytes_ += entries_.front().memory_bytes();
    return entries_.front().names;
  }

  // The table that was used last stays, however large.
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
  std::unordered_map<std::string, std::list<Entry>::iterator> places_;
  std::size_t bytes_ = 0;
  ImageNames unkept_;
};

ImageSymbolizer::ImageSymbolizer(const SymbolFiles& files, ImageSymbolizerOptions options)
    : files_(&files), options_(std::move(options)), cache_(std::make_unique<Cache>()) {}
ImageSymbolizer::~ImageSymbolizer() = default;
ImageSymbolizer::ImageSymbolizer(const ImageSymbolizer& other)
    : ImageSymbolizer(*other.files_, other.options_) {}
ImageSymbolizer::ImageSymbolizer(ImageSymbolizer&&) noexcept = default;
ImageSymbolizer& ImageSymbolizer::operator=(ImageSymbolizer&&) noexcept = default;

std::size_t ImageSymbolizer::cached_bytes() const { return cache_->bytes(); }

absl::StatusOr<Symbols> ImageSymbolizer::Symbolize(const Profile& profile) {
  Symbols symbols;
  symbols.frames.resize(profile.frames.size());
  symbols.modules.resize(profile.modules.size(), SymbolDetail::kNone);
  FunctionList functions;
  // Module by module, so that only one table is needed at a time.
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
    const ImageNames& names = cache_->Get(module, *files_, options_);
    if (names.functions.is_partial()) symbols.partly_named = module.path;
    if (names.has_image) symbols.modules[m] = SymbolDetail::kNames;
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
