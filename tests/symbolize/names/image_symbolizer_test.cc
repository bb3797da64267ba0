#include "strobe/symbolize/image_symbolizer.h"

#include <elf.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <random>
#include <set>
#include <vector>

#include "../../../src/symbolize/names/name_store.h"
#include "../loaded_image.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

namespace strobe {
namespace {

using testing::Library;
using testing::ModuleAt;
using testing::NameOf;
using testing::SystemSymbolizer;

namespace fs = std::filesystem;

std::string FixturePath(const std::string& name) {
  return absl::StrCat(STROBE_FIXTURE_DIRECTORY, "/libfixture_", name, ".so");
}

std::string ReadFile(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(in), {});
}
void WriteFile(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
}

std::string Unresolved(const Module& module, Address address) {
  return absl::StrCat(fs::path(module.path).filename().string(), "+0x",
                      absl::Hex(address - module.load_bias));
}

class ImageSymbolizerTest : public ::testing::Test {
 protected:
  ImageSymbolizerTest() {
    std::string pattern = (fs::temp_directory_path() / "strobe-elf-XXXXXX").string();
    directory_ = mkdtemp(pattern.data());
  }
  ~ImageSymbolizerTest() override { fs::remove_all(directory_); }

  // A copy of a fixture that a test may do anything to.
  std::string Copy(const std::string& name) {
    const std::string path = directory_ + "/lib" + name + ".so";
    fs::copy_file(FixturePath(name), path, fs::copy_options::overwrite_existing);
    return path;
  }

  std::string directory_;
};

TEST_F(ImageSymbolizerTest, NamesFunctionsOfEveryKind) {
  for (const char* fixture : {"full", "no_build_id"}) {
    const Library library(FixturePath(fixture));
    const Address function = library.Symbol("fixture_c_function");
    const Module module = ModuleAt(function);
    EXPECT_EQ(module.build_id.empty(), std::string(fixture) == "no_build_id");
    const FunctionSymbol c = NameOf(module, function + 1);
    EXPECT_EQ(c.name, "fixture_c_function") << fixture;
    EXPECT_EQ(c.system_name, "fixture_c_function");
    EXPECT_TRUE(c.resolved);
    const FunctionSymbol plus = NameOf(module, library.Symbol("_ZN7fixture4PlusEii"));
    EXPECT_EQ(plus.name, "fixture::Plus(int, int)");
    EXPECT_EQ(plus.system_name, "_ZN7fixture4PlusEii");
    EXPECT_EQ(NameOf(module, library.Symbol("_ZNK7fixture5StackIiE3TopEv")).name,
              "fixture::Stack<int>::Top() const");
    const auto hidden_address =
        reinterpret_cast<Address (*)()>(library.Symbol("fixture_hidden_address"));
    EXPECT_EQ(NameOf(module, hidden_address()).name, "fixture::Hidden(int)");
    EXPECT_EQ(NameOf(module, library.Symbol("fixture_unsized")).name, "fixture_unsized");
    EXPECT_EQ(NameOf(module, library.Symbol("fixture_after_unsized") - 1).name, "fixture_unsized")
        << "it reaches to the next function";
    EXPECT_EQ(NameOf(module, library.Symbol("fixture_after_unsized")).name,
              "fixture_after_unsized");
  }
}

TEST_F(ImageSymbolizerTest, StrippedFileStillHasItsDynamicNames) {
  const Library library(FixturePath("stripped"));
  const Address function = library.Symbol("fixture_c_function");
  const Module module = ModuleAt(function);
  EXPECT_EQ(NameOf(module, function).name, "fixture_c_function");
  const Address hidden =
      reinterpret_cast<Address (*)()>(library.Symbol("fixture_hidden_address"))();
  const FunctionSymbol symbol = NameOf(module, hidden);
  EXPECT_EQ(symbol.name, Unresolved(module, hidden));
  EXPECT_TRUE(absl::StartsWith(symbol.name, "libfixture_stripped.so+0x"));
  EXPECT_EQ(symbol.system_name, symbol.name);
  EXPECT_FALSE(symbol.resolved);
}

TEST_F(ImageSymbolizerTest, TellsWhichModulesItLookedUp) {
  const Library library(FixturePath("stripped"));
  const Module module = ModuleAt(library.Symbol("fixture_c_function"));
  const Address hidden =
      reinterpret_cast<Address (*)()>(library.Symbol("fixture_hidden_address"))();
  Module gone = module;
  gone.path = "/nonexistent/libgone.so";
  gone.build_id = "0123456789abcdef";
  Profile profile;
  profile.modules = {module, gone, module};
  profile.frames = {{hidden, 0}, {hidden, 1}};
  SystemSymbolizer symbolizer({.search = {.debug_directories = {}}});
  const Symbols symbols = *symbolizer.Symbolize(profile);
  EXPECT_EQ(symbols.modules,
            (std::vector{SymbolDetail::kNames, SymbolDetail::kNone, SymbolDetail::kNone}))
      << "a stripped file was looked up, although it has no name for the frame";
}

// A profile of some of the library's functions, and where each is defined.
Profile ProfileOfLines(const Library& library) {
  Profile profile;
  for (const char* name : {"fixture_c_function", "_ZN7fixture4PlusEii", "fixture_hidden_address"}) {
    const Address address = library.Symbol(name);
    if (profile.modules.empty()) profile.modules = {ModuleAt(address)};
    profile.frames.push_back({address, 0});
  }
  return profile;
}

TEST_F(ImageSymbolizerTest, ModeNoneReadsNothing) {
  const Library library(FixturePath("lines"));
  SystemSymbolizer symbolizer({.mode = SymbolMode::kNone});
  const Symbols symbols = *symbolizer.Symbolize(ProfileOfLines(library));
  EXPECT_TRUE(symbols.frames.empty());
  EXPECT_TRUE(symbols.functions.empty());
  EXPECT_EQ(symbolizer.cached_bytes(), 0u);
}

TEST_F(ImageSymbolizerTest, ModeFullTellsLinesAndInlinedFunctions) {
  const Library library(FixturePath("lines"));
  const Profile profile = ProfileOfLines(library);
  SystemSymbolizer symbolizer({.mode = SymbolMode::kFull});
  const Symbols symbols = *symbolizer.Symbolize(profile);
  EXPECT_EQ(symbols.modules, std::vector{SymbolDetail::kLines});
  ASSERT_EQ(symbols.frames.size(), 3u);
  const FunctionSymbol& plus = symbols.functions.at(symbols.frames[1].function);
  EXPECT_EQ(plus.name, "fixture::Plus(int, int)");
  EXPECT_TRUE(absl::EndsWith(plus.file, "fixtures/names.cc")) << plus.file;
  EXPECT_NE(plus.line, 0u) << "where the function begins";
  EXPECT_EQ(symbols.frames[1].line, plus.line) << "it has one line";
  EXPECT_EQ(symbols.frames[1].inlined_count, 0u);
}

TEST_F(ImageSymbolizerTest, LinesThatTheTimeDoesNotAllowAreFoundLater) {
  const Library library(FixturePath("lines"));
  const Profile profile = ProfileOfLines(library);
  SystemSymbolizer symbolizer(
      {.mode = SymbolMode::kFull, .time_limit = std::chrono::nanoseconds(0)});
  int calls = 0;
  Symbols symbols;
  do {
    symbols = *symbolizer.Symbolize(profile);
    EXPECT_EQ(symbols.functions.at(symbols.frames[1].function).name, "fixture::Plus(int, int)")
        << "names do not wait";
    ASSERT_LT(++calls, 1000) << "no progress";
  } while (symbols.modules[0] != SymbolDetail::kLines);
  EXPECT_GT(calls, 1);
  EXPECT_NE(symbols.frames[1].line, 0u);
}

TEST_F(ImageSymbolizerTest, KeepsLinesWithinItsLimitOfMemory) {
  const Library library(FixturePath("lines"));
  const Profile profile = ProfileOfLines(library);
  SystemSymbolizer roomy({.mode = SymbolMode::kFull});
  const Symbols symbols = *roomy.Symbolize(profile);
  const std::size_t kept = roomy.cached_bytes();
  SystemSymbolizer names;
  static_cast<void>(*names.Symbolize(profile));
  EXPECT_GT(kept, names.cached_bytes());
  // Without room for the lines, they are read for each profile anew.
  SystemSymbolizer narrow({.mode = SymbolMode::kFull, .cache_bytes = kept - 1});
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(narrow.Symbolize(profile)->frames[1].line, symbols.frames[1].line);
    EXPECT_LT(narrow.cached_bytes(), kept);
  }
}

TEST_F(ImageSymbolizerTest, BrokenDebugInformationCostsOnlyLines) {
  const std::string path = Copy("lines");
  const Library library(path);
  const Profile profile = ProfileOfLines(library);
  const std::string bytes = ReadFile(path);
  std::minstd_rand random(7);
  const std::size_t debug = bytes.size() / 4;  // code, symbols and headers are left as they are
  for (int round = 0; round < 300; ++round) {
    std::string broken = bytes;
    for (int i = 0; i < 30; ++i)
      broken[debug + random() % (bytes.size() * 3 / 4)] = static_cast<char>(random());
    WriteFile(path + ".broken", broken);
    Profile changed = profile;
    changed.modules[0].path = path + ".broken";
    SystemSymbolizer symbolizer({.mode = SymbolMode::kFull});
    EXPECT_TRUE(symbolizer.Symbolize(changed).ok());
  }
}

TEST_F(ImageSymbolizerTest, DebugDirectoryGivesWhatStrippingTook) {
  // What `strip --only-keep-debug` leaves has the build id of the file that it came from; the full
  // fixture lies in for it.
  const Library library(FixturePath("full"));
  const Address hidden =
      reinterpret_cast<Address (*)()>(library.Symbol("fixture_hidden_address"))();
  Module module = ModuleAt(hidden);
  const std::string place = absl::StrCat(directory_, "/.build-id/", module.build_id.substr(0, 2));
  const std::string file = absl::StrCat(place, "/", module.build_id.substr(2), ".debug");
  fs::create_directories(place);
  module.path = "/nonexistent/libgone.so";
  SystemSymbolizer symbolizer({.search = {.debug_directories = {directory_}}});
  EXPECT_FALSE(NameOf(symbolizer, module, hidden).resolved);
  fs::copy_file(FixturePath("other"), file);
  EXPECT_FALSE(NameOf(symbolizer, module, hidden).resolved)
      << "a file of another build was believed";
  fs::copy_file(FixturePath("full"), file, fs::copy_options::overwrite_existing);
  EXPECT_EQ(NameOf(symbolizer, module, hidden).name, "fixture::Hidden(int)")
      << "what was missing once is looked for again";
  ImageSymbolizer copy = symbolizer;
  EXPECT_EQ(copy.cached_bytes(), 0u);
  EXPECT_EQ(NameOf(copy, module, hidden).name, "fixture::Hidden(int)")
      << "a copy looks in the same directory";
}

TEST_F(ImageSymbolizerTest, LinkageTableAndUnknownAddressesGetOffsets) {
  const Library library(FixturePath("full"));
  const Address function = library.Symbol("fixture_c_function");
  const Module module = ModuleAt(function);
  // The linker puts .init and .plt at the front of the segment, before every function: nothing
  // there is named after one.
  const Address end = module.limit - 1;
  for (const Address address :
       {end, module.limit + 0x100000, module.load_bias, module.load_bias - 1}) {
    const FunctionSymbol symbol = NameOf(module, address);
    if (symbol.resolved) continue;  // the last byte may belong to _fini
    EXPECT_EQ(symbol.name, Unresolved(module, address));
  }
  EXPECT_FALSE(NameOf(module, module.limit + 0x100000).resolved);
  Profile profile;
  profile.frames = {{0x7f0012345678, Frame::kNoModule}, {2, Frame::kPseudo}, {0x1234, 17}};
  SystemSymbolizer symbolizer;
  const Symbols symbols = *symbolizer.Symbolize(profile);
  EXPECT_EQ(symbols.functions.at(symbols.frames.at(0).function).name, "0x7f0012345678");
  EXPECT_FALSE(symbols.functions.at(symbols.frames.at(0).function).resolved);
  EXPECT_EQ(symbols.frames.at(1).function, FrameSymbols::kNone);
  EXPECT_EQ(symbols.functions.at(symbols.frames.at(2).function).name, "0x1234");
}

TEST_F(ImageSymbolizerTest, GeneratedCodeHasItsOwnNameWhateverFileHasIt) {
  const Library library(FixturePath("full"));
  const Address function = library.Symbol("fixture_c_function");
  Module module = ModuleAt(function);
  module.kind = ModuleKind::kGeneratedCode;
  EXPECT_EQ(NameOf(module, function).name,
            absl::StrCat(module.path, "+0x", absl::Hex(function - module.load_bias)));
}

TEST_F(ImageSymbolizerTest, OneFunctionForAllItsAddresses) {
  const Library library(FixturePath("full"));
  const Address function = library.Symbol("fixture_c_function");
  Profile profile;
  profile.modules = {ModuleAt(function)};
  profile.frames = {{function, 0}, {function + 1, 0}, {function + 2, 0}};
  SystemSymbolizer symbolizer;
  const Symbols symbols = *symbolizer.Symbolize(profile);
  EXPECT_EQ(symbols.functions.size(), 1u);
}

TEST_F(ImageSymbolizerTest, FileReplacedOrDeletedCostsNamesAndNeverGivesWrongOnes) {
  const std::string path = Copy("full");
  const Library library(path);
  const Address function = library.Symbol("fixture_c_function");
  const Module module = ModuleAt(function);
  SystemSymbolizer warm;
  EXPECT_EQ(NameOf(warm, module, function).name, "fixture_c_function");
  // Another file takes its place; the loaded one lives on.
  fs::copy_file(FixturePath("other"), directory_ + "/new");
  fs::rename(directory_ + "/new", path);
  EXPECT_EQ(NameOf(module, function).name, Unresolved(module, function));
  EXPECT_EQ(NameOf(warm, module, function).name, "fixture_c_function")
      << "what was read before is still right";
  fs::remove(path);
  EXPECT_EQ(NameOf(module, function).name, Unresolved(module, function));
  EXPECT_EQ(NameOf(warm, module, function).name, "fixture_c_function");
}

TEST_F(ImageSymbolizerTest, ReloadOfAnotherLibraryUnderTheSamePathAndAddress) {
  SystemSymbolizer symbolizer;
  for (const std::string suffix : {"", "_no_build_id"}) {
    const std::string path = directory_ + "/libplugin" + suffix + ".so";
    std::vector<Module> modules;
    std::vector<Address> addresses;
    const std::string second = suffix.empty() ? "other" : "other_no_build_id";
    const std::string first = suffix.empty() ? "full" : "no_build_id";
    for (const std::string& fixture : {first, second, first}) {
      fs::copy_file(FixturePath(fixture), directory_ + "/new");
      fs::rename(directory_ + "/new", path);
      const Library library(path);
      addresses.push_back(
          library.Symbol(fixture == first ? "_ZN7fixture4PlusEii" : "_ZN7fixture5MinusEii"));
      modules.push_back(ModuleAt(addresses.back()));
      EXPECT_EQ(NameOf(symbolizer, modules.back(), addresses.back()).name,
                fixture == first ? "fixture::Plus(int, int)" : "fixture::Minus(int, int)");
    }
    if (!suffix.empty()) continue;
    EXPECT_EQ(NameOf(symbolizer, modules[1], addresses[1]).name, "fixture::Minus(int, int)")
        << "a late frame of the one before";
  }
}

TEST_F(ImageSymbolizerTest, ModuleWithoutBuildIdIsNotTakenForAnotherFile) {
  const Library library(FixturePath("no_build_id"));
  const Address function = library.Symbol("fixture_c_function");
  Module module = ModuleAt(function);
  module.path = FixturePath("full");
  EXPECT_FALSE(NameOf(module, function).resolved)
      << "a file with a build id was taken for one without";
  module.path = FixturePath("no_build_id");
  module.file_offset += 0x1000;
  EXPECT_FALSE(NameOf(module, function).resolved) << "the file does not map these bytes there";
}

TEST_F(ImageSymbolizerTest, OwnProgramAndTheKernelsCode) {
  const auto own = reinterpret_cast<Address>(&Unresolved);
  Module program = ModuleAt(own);
  EXPECT_TRUE(absl::StrContains(NameOf(program, own).name, "Unresolved"));
  if (!program.build_id.empty()) {
    program.path = "/nonexistent/replaced";
    EXPECT_TRUE(absl::StrContains(NameOf(program, own).name, "Unresolved"))
        << "the running program's own file was not found";
  }
  const Library vdso("linux-vdso.so.1");
  Address clock = vdso.Symbol("__vdso_clock_gettime");
  if (clock == 0) clock = vdso.Symbol("__kernel_clock_gettime");
  if (clock == 0) GTEST_SKIP() << "this kernel's vDSO has no clock_gettime";
  Module module = ModuleAt(clock);
  module.path = "[vdso]";
  module.kind = ModuleKind::kVdso;
  EXPECT_TRUE(absl::StrContains(NameOf(module, clock).name, "clock_gettime"));
  module.load_bias -= 0x1000;
  EXPECT_EQ(NameOf(module, clock).name,
            absl::StrCat("[vdso]+0x", absl::Hex(clock - module.load_bias)));
}

TEST_F(ImageSymbolizerTest, CacheStaysWithinItsBytes) {
  const Library library(FixturePath("full"));
  const Address function = library.Symbol("fixture_c_function");
  const Module module = ModuleAt(function);
  SystemSymbolizer keeping;
  EXPECT_EQ(NameOf(keeping, module, function).name, "fixture_c_function");
  EXPECT_GT(keeping.cached_bytes(), 100u);
  const std::size_t one = keeping.cached_bytes();
  EXPECT_EQ(NameOf(keeping, module, function).name, "fixture_c_function");
  EXPECT_EQ(keeping.cached_bytes(), one);
  SystemSymbolizer tight({.cache_bytes = one});
  const Library other(FixturePath("other"));
  const Address minus = other.Symbol("fixture_other_function");
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(NameOf(tight, module, function).name, "fixture_c_function");
    EXPECT_LE(tight.cached_bytes(), one);
    EXPECT_EQ(NameOf(tight, ModuleAt(minus), minus).name, "fixture_other_function");
    EXPECT_LE(tight.cached_bytes(), one);
  }
  SystemSymbolizer forgetful({.cache_bytes = 0});
  EXPECT_EQ(NameOf(forgetful, module, function).name, "fixture_c_function");
  EXPECT_EQ(forgetful.cached_bytes(), one)
      << "what is larger than the cache, and the last, is not read again";
  EXPECT_EQ(NameOf(forgetful, ModuleAt(minus), minus).name, "fixture_other_function");
  EXPECT_LE(forgetful.cached_bytes(), one) << "only one stays";
}

// In a process of its own, because sharing does not end.
TEST_F(ImageSymbolizerTest, SymbolizersOfAProcessThatSharesReadAnImageOnce) {
  const Library library(Copy("full"));
  const Address function = library.Symbol("fixture_c_function");
  const Module module = ModuleAt(function);
  const auto name = [&] { return NameOf(module, function).name; };  // by a new symbolizer
  EXPECT_EXIT(
      {
        internal::ShareNames(std::size_t{1} << 20);
        const bool is_read = name() == "fixture_c_function";
        fs::remove(module.path);
        const bool is_shared = name() == "fixture_c_function";
        Module other = module;
        other.build_id.back() ^= 1;
        const bool is_of_it_only = NameOf(other, function).name == Unresolved(other, function);
        std::_Exit(is_read && is_shared && is_of_it_only ? 0 : 1);
      },
      ::testing::ExitedWithCode(0), "");
  fs::remove(module.path);
  EXPECT_EQ(name(), Unresolved(module, function)) << "this process shares nothing";
}

// Every function that nm knows of has, at its first byte, one of the names that nm gives it.
TEST_F(ImageSymbolizerTest, AgreesWithNm) {
  if (std::system("nm --version >/dev/null 2>&1") != 0) GTEST_SKIP() << "nm is not installed";
  for (const std::string fixture : {"full", "stripped"}) {
    const Library library(FixturePath(fixture));
    const Module module = ModuleAt(library.Symbol("fixture_c_function"));
    const std::string command = absl::StrCat("nm ", fixture == "stripped" ? "-D " : "",
                                             "--defined-only '", FixturePath(fixture), "'");
    std::map<Address, std::set<std::string>> expected;
    std::FILE* pipe = popen(command.c_str(), "r");
    ASSERT_NE(pipe, nullptr);
    unsigned long address = 0;
    char kind = 0;
    char name[4096];
    bool has_sanitizer = false;
    while (std::fscanf(pipe, "%lx %c %4095s", &address, &kind, name) == 3) {
      has_sanitizer |= std::string_view(name).starts_with("__asan_");
      // "$x" and its like mark code and data within functions of aarch64.
      if (std::strchr("tTWi", kind) != nullptr && name[0] != '$')
        expected[address].insert(std::string(absl::string_view(name)));
    }
    pclose(pipe);
    if (has_sanitizer)
      GTEST_SKIP()
          << "the sanitizer's hand-written functions have labels inside, which nm shows as well";
    ASSERT_GT(expected.size(), 5u);
    SystemSymbolizer symbolizer;
    std::size_t agreed = 0;
    for (const auto& [at, names] : expected) {
      const FunctionSymbol symbol = NameOf(symbolizer, module, at + module.load_bias);
      // Labels that are no functions have no name here; nm shows them all the same.
      if (!symbol.resolved) continue;
      EXPECT_TRUE(names.contains(symbol.system_name)) << symbol.system_name;
      ++agreed;
    }
    EXPECT_GE(agreed, expected.size() * 2 / 3);
  }
}

// Broken files: random bytes changed, most of them where the structures are. Under the sanitizers
// this also checks every read.
TEST_F(ImageSymbolizerTest, MutatedFilesCostOnlyNames) {
  for (const std::string fixture : {"stripped", "no_build_id"}) {
    const std::string bytes = ReadFile(FixturePath(fixture));
    ASSERT_GT(bytes.size(), 4096u);
    std::uint64_t sections = 0;
    std::memcpy(&sections, bytes.data() + 0x28, sizeof(sections));
    const Library library(FixturePath(fixture));
    const Address function = library.Symbol("fixture_c_function");
    Module module = ModuleAt(function);
    module.path = directory_ + "/mutated";
    Profile profile;
    profile.modules = {module};
    for (Address address = module.start; address < module.limit; address += 16)
      profile.frames.push_back({address, 0});
    std::mt19937_64 random(3);
    int resolved = 0;
    for (int round = 0; round < 400; ++round) {
      std::string mutated = bytes;
      const int flips = 1 + static_cast<int>(random() % 8);
      for (int i = 0; i < flips; ++i) {
        const std::size_t place = random() % 4 == 0 ? random() % bytes.size()
                                  : random() % 2 == 0
                                      ? random() % std::min<std::size_t>(bytes.size(), 2048)
                                      : sections + random() % (bytes.size() - sections);
        mutated[place] = static_cast<char>(random() % 4 == 0 ? 0xFF : random());
      }
      if (random() % 8 == 0) mutated.resize(random() % mutated.size());
      WriteFile(module.path, mutated);
      SystemSymbolizer symbolizer;
      const absl::StatusOr<Symbols> symbols = symbolizer.Symbolize(profile);
      ASSERT_TRUE(symbols.ok());
      ASSERT_EQ(symbols->frames.size(), profile.frames.size());
      for (const FunctionSymbol& symbol : symbols->functions) resolved += symbol.resolved ? 1 : 0;
    }
    EXPECT_GT(resolved, 100) << "the mutations never left anything to read";
  }
}

// A copy of an image whose symbols and their names are followed by as much nothing as makes these
// tables `symbol_count` and `string_bytes` long, in a file that is mostly holes.
void WriteWithLongTables(const std::string& image, std::uint64_t symbol_count,
                         std::uint64_t string_bytes, const std::string& path) {
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file << image;
  Elf64_Ehdr header;
  std::memcpy(&header, image.data(), sizeof(header));
  std::vector<Elf64_Shdr> sections(header.e_shnum);
  std::memcpy(sections.data(), image.data() + header.e_shoff,
              sections.size() * sizeof(sections[0]));
  const auto move_to = [&](Elf64_Shdr& section, std::uint64_t offset, std::uint64_t bytes) {
    file.seekp(static_cast<std::streamoff>(offset));
    file << image.substr(section.sh_offset, section.sh_size);
    section.sh_offset = offset;
    section.sh_size = bytes;
  };
  const auto symbols = std::find_if(sections.begin(), sections.end(), [](const auto& section) {
    return section.sh_type == SHT_SYMTAB;
  });
  ASSERT_NE(symbols, sections.end());
  Elf64_Shdr& strings = sections.at(symbols->sh_link);
  move_to(*symbols, (image.size() + 63) / 64 * 64, symbol_count * sizeof(Elf64_Sym));
  move_to(strings, symbols->sh_offset + symbols->sh_size, string_bytes);
  file.seekp(static_cast<std::streamoff>(header.e_shoff));
  file.write(reinterpret_cast<const char*>(sections.data()),
             static_cast<std::streamsize>(sections.size() * sizeof(sections[0])));
  file.close();
  ASSERT_TRUE(file.good());
  fs::resize_file(path, strings.sh_offset + strings.sh_size);
}

TEST_F(ImageSymbolizerTest, TablesAreReadHoweverLongTheyAreAndWhatIsLeftOutIsSaid) {
  const Library library(FixturePath("full"));
  const Address hidden =
      reinterpret_cast<Address (*)()>(library.Symbol("fixture_hidden_address"))();
  Module module = ModuleAt(hidden);
  const std::string image = ReadFile(module.path);
  module.path = directory_ + "/liblong.so";
  Profile profile;
  profile.modules = {module};
  profile.frames = {{hidden, 0}};
  for (const bool is_too_long : {false, true}) {
    const std::uint64_t symbol_count = is_too_long ? (1 << 24) + 1 : (1 << 22) + 1;
    WriteWithLongTables(image, symbol_count, std::uint64_t{1} << 29, module.path);
    SystemSymbolizer symbolizer;
    const absl::StatusOr<Symbols> symbols = symbolizer.Symbolize(profile);
    ASSERT_TRUE(symbols.ok());
    ASSERT_EQ(symbols->functions.size(), 1U);
    EXPECT_EQ(symbols->functions[0].name, "fixture::Hidden(int)");
    EXPECT_LE(symbolizer.cached_bytes(), std::size_t{1} << 20);
    EXPECT_EQ(symbols->partly_named, is_too_long ? module.path : "");
  }
}

TEST_F(ImageSymbolizerTest, StrangeFilesCostOnlyNames) {
  Module module{0x1000, 0x2000, 0x1000, 0, directory_ + "/strange", ""};
  for (const std::string& bytes : {std::string(),
                                   std::string("\x7f"
                                               "ELF"),
                                   std::string(64, '\xff'), std::string(100000, '\0')}) {
    WriteFile(module.path, bytes);
    EXPECT_EQ(NameOf(module, 0x1234).name, "strange+0x1234");
  }
  // A huge file with nothing in it but a header that points everywhere.
  std::string bytes = ReadFile(FixturePath("full")).substr(0, 64);
  WriteFile(module.path, bytes);
  fs::resize_file(module.path, std::uint64_t{1} << 36);
  EXPECT_FALSE(NameOf(module, 0x1234).resolved);
  fs::remove(module.path);
  ASSERT_EQ(mkfifo(module.path.c_str(), 0600), 0);
  EXPECT_FALSE(NameOf(module, 0x1234).resolved) << "that pipe has no writer";
  module.path = directory_;
  EXPECT_FALSE(NameOf(module, 0x1234).resolved);
}

}  // namespace
}  // namespace strobe
