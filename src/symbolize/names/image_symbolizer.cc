#include "strobe/symbolize/image_symbolizer.h"

#include <algorithm>
#include <list>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "../images/image_names.h"
#include "../images/kept_files.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "demangle.h"
#include "module_lines.h"
#include "name_store.h"
#include "strobe/core/thread_info.h"

namespace strobe {
namespace internal {

// Symbols::functions of one profile, without repetition. Texts may be anything; those of the list
// are valid UTF-8.
class FunctionList {
 public:
  // The index of a function that has a symbol. `file` and `line` tell where it is defined; empty
  // and 0 if unknown.
  std::uint32_t Resolved(std::string_view system_name, std::string_view file, std::uint32_t line) {
    const auto [place, is_new] = resolved_.try_emplace(KeyOf(system_name, file), Next());
    if (is_new) {
      name_bytes_ += system_name.size() + file.size();
      functions_.push_back({.name = demangler_.Demangle(system_name),
                            .system_name = ValidUtf8(system_name),
                            .file = ValidUtf8(file)});
    }
    std::uint32_t& known_line = functions_[place->second].line;
    if (known_line == 0) known_line = line;
    return place->second;
  }
  // The index of code without a symbol.
  std::uint32_t Unresolved(const std::string& name, std::string_view file) {
    const auto [place, is_new] = unresolved_.try_emplace(KeyOf(name, file), Next());
    if (is_new) {
      functions_.push_back(
          {.name = name, .system_name = name, .resolved = false, .file = ValidUtf8(file)});
    }
    return place->second;
  }

  // The texts of resolved functions, as the images have them.
  [[nodiscard]] std::size_t name_bytes() const { return name_bytes_; }
  std::vector<FunctionSymbol> Take() { return std::move(functions_); }

 private:
  static std::string KeyOf(std::string_view name, std::string_view file) {
    std::string key(name);
    key.push_back('\0');
    return key.append(file);
  }
  [[nodiscard]] std::uint32_t Next() const { return static_cast<std::uint32_t>(functions_.size()); }

  Demangler demangler_;
  std::size_t name_bytes_ = 0;
  std::vector<FunctionSymbol> functions_;
  std::unordered_map<std::string, std::uint32_t> resolved_;
  std::unordered_map<std::string, std::uint32_t> unresolved_;
};

}  // namespace internal

namespace {

using internal::ImageNames;

// Of all names in a profile; further functions have no name. Only hostile images have so much text.
constexpr std::size_t kMaxFunctionNameBytes = std::size_t{256} << 20;

ImageNames ReadNames(const Module& module, const SymbolFiles& files,
                     const ImageSymbolizerOptions& options) {
  switch (module.format) {
    case ImageFormat::kElf: return internal::ReadElfNames(module, files, options.search);
    case ImageFormat::kPe:
      return internal::ReadPeNames(module, files, options.search, options.use_system_library);
  }
  return {};
}

// Identifies a module's symbols: by its build id, or without one by the file and its place. Two PE
// images that were linked in the same second may have the same build id.
std::string CacheKey(const Module& module, const SymbolFiles& files) {
  if (!module.build_id.empty() && module.format == ImageFormat::kElf) return module.build_id;
  std::shared_ptr<const FileSource> source = internal::KeptFileOf(module);
  if (source == nullptr) source = files.Open(module.path);
  return absl::StrCat(module.path, "\n", source == nullptr ? "" : source->identity(), "\n",
                      module.start - module.load_bias, "\n", module.file_offset);
}

// The names of a module, which may be another symbolizer's, too. Where they are looked for may
// decide how many there are; what `fetch` would find is unknown.
std::shared_ptr<const ImageNames> GetNames(const Module& module, const std::string& key,
                                           const SymbolFiles& files,
                                           const ImageSymbolizerOptions& options) {
  const auto read = [&] { return ReadNames(module, files, options); };
  internal::NameStore* const store = internal::SharedNames();
  const SymbolSearch& search = options.search;
  if (store == nullptr || search.fetch != nullptr)
    return std::make_shared<const ImageNames>(read());
  const auto list = [](const std::vector<std::string>& paths) { return absl::StrJoin(paths, ":"); };
  return store->Get(
      absl::StrCat(key, "\n", list(search.image_directories), "\n", list(search.debug_directories),
                   "\n", list(search.debuginfod_caches)),
      read);
}

// Memory of no file, and with no name of its own.
constexpr const char* kNoFile = "[anonymous]";

std::string UnresolvedName(const Module& module, Address address) {
  const std::size_t slash =
      module.has_file() ? module.path.find_last_of(module.format == ImageFormat::kPe ? "/\\" : "/")
                        : std::string::npos;
  const std::string file = slash == std::string::npos ? module.path : module.path.substr(slash + 1);
  return absl::StrCat(file.empty() ? kNoFile : ValidUtf8(file), "+0x",
                      absl::Hex(address - module.load_bias));
}

}  // namespace

// What is known of modules, the most recently used in front.
class ImageSymbolizer::Cache {
 public:
  struct Entry {
    std::string key;
    std::shared_ptr<const ImageNames> names;
    internal::ModuleLines lines;
    std::size_t counted_bytes = 0;

    [[nodiscard]] std::size_t memory_bytes() const {
      return sizeof(Entry) + 2 * key.size() + names->memory_bytes() + lines.memory_bytes();
    }
  };

  // Valid until Trim, and until the next call.
  Entry& Get(const Module& module, const SymbolFiles& files,
             const ImageSymbolizerOptions& options) {
    if (module.kind == ModuleKind::kGeneratedCode) {  // no file holds it
      unkept_ = {.key = {}, .names = std::make_shared<const ImageNames>(), .lines = {}};
      return unkept_;
    }
    std::string key = CacheKey(module, files);
    const auto found = places_.find(key);
    if (found == places_.end()) {
      // All that may throw comes first, so that no entry lacks its place in the list.
      std::list<Entry> entry;
      entry.push_front({.key = key, .names = GetNames(module, key, files, options), .lines = {}});
      places_.emplace(std::move(key), entry.begin());
      entries_.splice(entries_.begin(), entry);
    } else {
      entries_.splice(entries_.begin(), entries_, found->second);
      if (!entries_.front().names->is_final)
        entries_.front().names = GetNames(module, found->first, files, options);
    }
    return entries_.front();
  }

  // Drops what exceeds the limit, except the names that were used last. Called after each Get.
  void Trim(std::size_t limit_bytes) {
    if (entries_.empty()) return;
    Entry& last = entries_.front();
    if (last.memory_bytes() > limit_bytes) last.lines = {};
    bytes_ += last.memory_bytes() - last.counted_bytes;
    last.counted_bytes = last.memory_bytes();
    while (bytes_ > limit_bytes && entries_.size() > 1) {
      bytes_ -= entries_.back().counted_bytes;
      places_.erase(entries_.back().key);
      entries_.pop_back();
    }
  }

  [[nodiscard]] std::size_t bytes() const { return bytes_; }

 private:
  std::list<Entry> entries_;
  std::unordered_map<std::string, std::list<Entry>::iterator> places_;
  std::size_t bytes_ = 0;
  Entry unkept_;
};

// One call of Symbolize.
class ImageSymbolizer::Work {
 public:
  Work(ImageSymbolizer& symbolizer, const Profile& profile)
      : files_(*symbolizer.files_),
        options_(symbolizer.options_),
        cache_(*symbolizer.cache_),
        profile_(profile),
        begin_(std::chrono::steady_clock::now()) {}

  Symbols Run() {
    symbols_.frames.resize(profile_.frames.size());
    symbols_.modules.resize(profile_.modules.size(), SymbolDetail::kNone);
    // Module by module, so that only one table is needed at a time.
    std::vector<std::vector<std::uint32_t>> frames_of(profile_.modules.size());
    for (std::uint32_t i = 0; i < profile_.frames.size(); ++i) {
      const Frame& frame = profile_.frames[i];
      if (frame.is_pseudo()) continue;
      if (frame.module < profile_.modules.size()) {
        frames_of[frame.module].push_back(i);
      } else {
        symbols_.frames[i].function =
            functions_.Unresolved(absl::StrCat("0x", absl::Hex(frame.address)), {});
      }
    }
    for (std::size_t m = 0; m < frames_of.size(); ++m) {
      if (!frames_of[m].empty()) SymbolizeModule(m, frames_of[m]);
    }
    symbols_.functions = functions_.Take();
    return std::move(symbols_);
  }

 private:
  void SymbolizeModule(std::size_t index, const std::vector<std::uint32_t>& frames) {
    const Module& module = profile_.modules[index];
    Cache::Entry& entry = cache_.Get(module, files_, options_);
    if (entry.names->functions.is_partial()) symbols_.partly_named = module.path;
    const bool has_lines = options_.mode == SymbolMode::kFull && LookUpLines(module, frames, entry);
    if (has_lines) {
      symbols_.modules[index] = SymbolDetail::kLines;
    } else if (entry.names->has_image) {
      symbols_.modules[index] = SymbolDetail::kNames;
    }
    for (const std::uint32_t frame : frames) SymbolizeFrame(module, entry, frame);
    cache_.Trim(options_.cache_bytes);
  }

  // True if all lines of the module are known.
  bool LookUpLines(const Module& module, const std::vector<std::uint32_t>& frames,
                   Cache::Entry& entry) {
    if (!module.has_file()) return false;
    if (has_looked_up_ && IsLate()) return false;
    std::vector<std::uint64_t> addresses;
    addresses.reserve(frames.size());
    for (const std::uint32_t frame : frames)
      addresses.push_back(profile_.frames[frame].address - module.load_bias);
    std::sort(addresses.begin(), addresses.end());
    return entry.lines.LookUp(module, addresses, files_, options_, [&] {
      has_looked_up_ = true;
      return IsLate();
    });
  }

  void SymbolizeFrame(const Module& module, const Cache::Entry& entry, std::uint32_t index) {
    const Address address = profile_.frames[index].address;
    FrameSymbols& frame = symbols_.frames[index];
    std::string_view name = entry.names->Find(address - module.load_bias);
    if (functions_.name_bytes() > kMaxFunctionNameBytes) {
      frame.function = functions_.Unresolved(UnresolvedName(module, address), {});
      return;
    }
    const internal::ModuleLines& lines = entry.lines;
    const std::span<const internal::ModuleLines::Line> known =
        lines.Find(address - module.load_bias);
    std::string_view file;
    std::uint32_t function_line = 0;
    if (!known.empty()) {
      frame.inlined_begin = static_cast<std::uint32_t>(symbols_.inlined.size());
      frame.inlined_count = static_cast<std::uint32_t>(known.size() - 1);
      for (const internal::ModuleLines::Line& line : known.first(known.size() - 1)) {
        symbols_.inlined.push_back(
            {.function = NameOfInlined(lines, line), .line = line.line, .column = line.column});
      }
      frame.line = known.back().line;
      frame.column = known.back().column;
      file = lines.TextOf(known.back().file);
      function_line = known.back().function_line;
      if (name.empty()) name = lines.TextOf(known.back().function);
    }
    frame.function = name.empty() ? functions_.Unresolved(UnresolvedName(module, address), file)
                                  : functions_.Resolved(name, file, function_line);
  }

  std::uint32_t NameOfInlined(const internal::ModuleLines& lines,
                              const internal::ModuleLines::Line& line) {
    const std::string_view name = lines.TextOf(line.function);
    const std::string_view file = lines.TextOf(line.file);
    return name.empty() ? functions_.Unresolved("[inlined]", file)
                        : functions_.Resolved(name, file, line.function_line);
  }

  [[nodiscard]] bool IsLate() const {
    return std::chrono::steady_clock::now() - begin_ >= options_.time_limit;
  }

  const SymbolFiles& files_;
  const ImageSymbolizerOptions& options_;
  Cache& cache_;
  const Profile& profile_;
  std::chrono::steady_clock::time_point begin_;
  bool has_looked_up_ = false;
  Symbols symbols_;
  internal::FunctionList functions_;
};

ImageSymbolizerOptions ImageSymbolizerOptions::From(const SymbolOptions& options,
                                                    const std::string& debuginfod_cache) {
  ImageSymbolizerOptions result;
  result.mode = *options.mode;
  result.cache_bytes = static_cast<std::size_t>(*options.memory_bytes);
  result.time_limit = std::chrono::nanoseconds(static_cast<std::int64_t>(*options.time_s * 1e9));
  result.search.debug_directories = ParsePathList(*options.debug_directories);
  if (!debuginfod_cache.empty()) result.search.debuginfod_caches = {debuginfod_cache};
  return result;
}

ImageSymbolizer::ImageSymbolizer(const SymbolFiles& files, ImageSymbolizerOptions options)
    : files_(&files), options_(std::move(options)), cache_(std::make_unique<Cache>()) {}
ImageSymbolizer::~ImageSymbolizer() = default;
ImageSymbolizer::ImageSymbolizer(const ImageSymbolizer& other)
    : ImageSymbolizer(*other.files_, other.options_) {}
ImageSymbolizer::ImageSymbolizer(ImageSymbolizer&&) noexcept = default;
ImageSymbolizer& ImageSymbolizer::operator=(ImageSymbolizer&&) noexcept = default;

std::size_t ImageSymbolizer::cached_bytes() const { return cache_->bytes(); }

absl::StatusOr<Symbols> ImageSymbolizer::Symbolize(const Profile& profile) {
  if (options_.mode == SymbolMode::kNone) return Symbols();
  return Work(*this, profile).Run();
}

}  // namespace strobe
