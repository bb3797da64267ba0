// Prints the functions and source lines of an image's addresses, as llvm-symbolizer --no-demangle
// does:
//
//   source_lines [--demangle] [--names] [--time] IMAGE [DEBUG_DIRECTORY...] < ADDRESSES
//
// An address is hexadecimal and counts as the file does. For each, two lines for each function,
// innermost first: the name, and FILE:LINE:COLUMN; then an empty line. --names prints only the
// function of each address. --time writes the time and the memory that it took to standard error.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "strobe/core/profile.h"
#include "strobe/platform/native.h"
#include "strobe/platform/platform_symbolizer.h"
#include "strobe/symbolize/pe_image.h"
#include "symbolize/elf/elf_file.h"
#include "symbolize/images/byte_source.h"

namespace strobe {
namespace {

using internal::ElfFile;
using internal::PeImage;

struct Arguments {
  bool demangle = false;
  bool names = false;
  bool time = false;
  std::string image;
  SymbolSearch search;
};

std::optional<Arguments> Parse(int count, char** values) {
  Arguments arguments;
  arguments.search.debug_directories.clear();
  for (int i = 1; i < count; ++i) {
    const std::string_view value = values[i];
    if (value == "--demangle") {
      arguments.demangle = true;
    } else if (value == "--names") {
      arguments.names = true;
    } else if (value == "--time") {
      arguments.time = true;
    } else if (arguments.image.empty()) {
      arguments.image = value;
    } else {
      arguments.search.debug_directories.emplace_back(value);
    }
  }
  if (arguments.image.empty()) return std::nullopt;
  return arguments;
}

// The image as a profile has it that was loaded where the file says.
std::optional<Module> ModuleOf(const std::string& path) {
  const std::unique_ptr<FileSource> source = NativePlatform::Files().Open(path);
  if (source == nullptr) return std::nullopt;
  Module module;
  module.path = path;
  module.limit = ~Address{0};
  if (const std::optional<ElfFile> file = ElfFile::Open(*source)) {
    module.build_id = file->build_id();
    return module;
  }
  const std::optional<PeImage> image =
      PeImage::Open(internal::ReaderOf(*source), PeImage::Layout::kFile);
  if (!image.has_value()) return std::nullopt;
  module.build_id = image->build_id;
  module.load_bias = image->preferred_base;
  module.format = ImageFormat::kPe;
  return module;
}

void Print(const Symbols& symbols, std::uint32_t index, const Arguments& arguments) {
  const auto print = [&](std::uint32_t function, std::uint32_t line, std::uint32_t column) {
    const FunctionSymbol& symbol = symbols.functions[function];
    const std::string& name = arguments.demangle ? symbol.name : symbol.system_name;
    std::printf("%s\n%s:%u:%u\n", symbol.resolved ? name.c_str() : "??",
                symbol.file.empty() ? "??" : symbol.file.c_str(), line, column);
  };
  const FrameSymbols& frame = symbols.frames[index];
  for (std::uint32_t i = 0; i < frame.inlined_count; ++i) {
    const SourceLine& line = symbols.inlined[frame.inlined_begin + i];
    print(line.function, line.line, line.column);
  }
  print(frame.function, frame.line, frame.column);
  std::puts("");
}

int Run(const Arguments& arguments) {
  const std::optional<Module> module = ModuleOf(arguments.image);
  if (!module.has_value()) {
    std::cerr << arguments.image << " is neither an ELF nor a PE image\n";
    return 1;
  }
  Profile profile;
  profile.modules = {*module};
  for (Address address = 0; std::cin >> std::hex >> address;)
    profile.frames.push_back({address, 0});
  PlatformSymbolizer<NativePlatform> symbolizer(
      {.mode = arguments.names ? SymbolMode::kNames : SymbolMode::kFull,
       .cache_bytes = std::size_t{256} << 20,
       .search = arguments.search});
  const auto begin = std::chrono::steady_clock::now();
  const absl::StatusOr<Symbols> symbols = symbolizer.Symbolize(profile);
  const std::chrono::duration<double, std::milli> time = std::chrono::steady_clock::now() - begin;
  if (!symbols.ok()) return 1;
  if (arguments.time) {
    std::fprintf(stderr, "%.1f ms, %zu bytes kept\n", time.count(), symbolizer.cached_bytes());
  }
  for (std::uint32_t i = 0; i < profile.frames.size(); ++i) Print(*symbols, i, arguments);
  return symbols->modules.at(0) == SymbolDetail::kNone ? 1 : 0;
}

}  // namespace
}  // namespace strobe

int main(int count, char** values) {
  const std::optional<strobe::Arguments> arguments = strobe::Parse(count, values);
  if (!arguments.has_value()) {
    std::cerr << "usage: source_lines [--demangle] [--names] [--time] IMAGE [DEBUG_DIRECTORY...]\n";
    return 2;
  }
  return strobe::Run(*arguments);
}
