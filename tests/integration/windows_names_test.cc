// Names of functions in an image whose debug information is a PDB file. STROBE_TEST_PDB_PLUGINS is
// the directory of such an image and of another build of it.
#include <gtest/gtest.h>
#include <windows.h>
// After it.
#include <dbghelp.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_format.h"
#include "platform/test_system.h"
#include "strobe/own_parts.h"
#include "strobe/symbolize/image_symbolizer.h"
#include "written_profiles.h"

namespace strobe::testing {
namespace {

namespace fs = std::filesystem;
using SystemSymbolizer = DefaultTraits::Symbolizer;

constexpr char kImage[] = "pdb_plugin.dll";
constexpr char kDebugFile[] = "pdb_plugin.pdb";

// The image is copied into a directory of its own, so that a test can leave the PDB file away, or
// put another there.
class WindowsNames : public ::testing::Test {
 protected:
  void SetUp() override {
    const char* const plugins = std::getenv("STROBE_TEST_PDB_PLUGINS");
    if (plugins == nullptr || *plugins == '\0')
      GTEST_SKIP() << "nothing here makes PDB files: clang and lld-link are missing";
    plugins_ = plugins;
    fs::copy_file(plugins_ / kImage, directory_.path() / kImage);
  }
  void TearDown() override { library_.reset(); }

  // Loads the image and finds its code.
  void Load() {
    library_.emplace(directory_.path() / kImage);
    ASSERT_TRUE(*library_) << Library::Error();
    work_ = library_->Symbol("PdbPluginWork");
    // NOLINTNEXTLINE(performance-no-int-to-ptr)
    spins_ = reinterpret_cast<Address>(
        reinterpret_cast<void* (*)()>(library_->Symbol("PdbPluginSpins"))());
    for (const Module& module : NativePlatform::Modules()) {
      if (module.start <= work_ && work_ < module.limit) module_ = module;
    }
    ASSERT_NE(module_.path.find("pdb_plugin"), std::string::npos);
  }
  std::string NameOf(Address address, const ImageSymbolizerOptions& options = {}) const {
    SystemSymbolizer symbolizer(options);
    return NameOf(symbolizer, address);
  }
  std::string NameOf(ImageSymbolizer& symbolizer, Address address) const {
    Profile profile;
    profile.modules = {module_};
    profile.frames = {{address, 0}};
    const absl::StatusOr<Symbols> symbols = symbolizer.Symbolize(profile);
    return symbols.ok() && symbols->frames.size() == 1
               ? symbols->functions.at(symbols->frames[0].function).name
               : symbols.status().ToString();
  }

  fs::path plugins_;
  TemporaryDirectory directory_;
  std::optional<Library> library_;
  Module module_;
  Address work_ = 0;
  Address spins_ = 0;
};

TEST_F(WindowsNames, ComeFromThePdbFile) {
  fs::copy_file(plugins_ / kDebugFile, directory_.path() / kDebugFile);
  Load();
  EXPECT_EQ(NameOf(spins_), "pdb_plugin::Spins");
  EXPECT_EQ(NameOf(spins_ + 5), "pdb_plugin::Spins");
  EXPECT_EQ(NameOf(work_ + 1), "PdbPluginWork");
  EXPECT_EQ(NameOf(work_ + 1, {.use_system_library = false}), "PdbPluginWork");
  EXPECT_EQ(NameOf(spins_, {.use_system_library = false}).find("pdb_plugin.dll+0x"), 0u);
}

// Of each byte of the function that has another inlined, as a profile with source lines has them:
// the functions, innermost first, with FILE:LINE.
TEST_F(WindowsNames, LinesAndInlinedFunctionsComeFromThePdbFile) {
  fs::copy_file(plugins_ / kDebugFile, directory_.path() / kDebugFile);
  Load();
  Profile profile;
  profile.modules = {module_};
  constexpr Address kBytes = 48;  // of the function, and of what follows
  for (Address address = work_; address < work_ + kBytes; ++address)
    profile.frames.push_back({address, 0});
  profile.frames.push_back({spins_ + 5, 0});
  SystemSymbolizer symbolizer({.mode = SymbolMode::kFull});
  const absl::StatusOr<Symbols> symbols = symbolizer.Symbolize(profile);
  ASSERT_TRUE(symbols.ok());
  EXPECT_EQ(symbols->modules.at(0), SymbolDetail::kLines);
  const auto file_name = [&](std::uint32_t function) {
    return fs::path(symbols->functions.at(function).file).filename().string();
  };
  const FrameSymbols& spins = symbols->frames.back();
  EXPECT_EQ(file_name(spins.function), "pdb_plugin.cc");
  EXPECT_GT(spins.line, 4u);
  EXPECT_LT(spins.line, 9u);
  EXPECT_EQ(symbols->functions.at(spins.function).name, "pdb_plugin::Spins");
  bool has_inlined = false;
  for (const FrameSymbols& frame : symbols->frames) {
    if (frame.inlined_count == 0) continue;
    has_inlined = true;
    EXPECT_EQ(frame.inlined_count, 1u);
    const SourceLine& inlined = symbols->inlined.at(frame.inlined_begin);
    // Wine leaves out the namespace.
    const std::string& name = symbols->functions.at(inlined.function).name;
    EXPECT_TRUE(name == "pdb_plugin::Inlined" || name == "Inlined") << name;
    EXPECT_EQ(file_name(inlined.function), "pdb_plugin.cc");
    EXPECT_EQ(inlined.line, 13u);
    EXPECT_EQ(symbols->functions.at(frame.function).name, "PdbPluginWork");
  }
  EXPECT_TRUE(has_inlined);

  SystemSymbolizer without({.mode = SymbolMode::kFull, .use_system_library = false});
  EXPECT_EQ(without.Symbolize(profile)->frames.back().line, 0u);
}

TEST_F(WindowsNames, AreRightAfterTheImageIsGone) {
  fs::copy_file(plugins_ / kDebugFile, directory_.path() / kDebugFile);
  Load();
  library_.reset();
  EXPECT_EQ(NameOf(spins_), "pdb_plugin::Spins");
}

TEST_F(WindowsNames, WithoutTheFileComeFromWhatIsExported) {
  Load();
  EXPECT_EQ(NameOf(work_ + 1), "PdbPluginWork");
  EXPECT_EQ(NameOf(spins_).find("pdb_plugin.dll+0x"), 0u) << NameOf(spins_);
}

TEST_F(WindowsNames, TheFileOfAnotherBuildIsNotTaken) {
  fs::copy_file(plugins_ / "other_pdb_plugin.pdb", directory_.path() / kDebugFile);
  Load();
  EXPECT_EQ(NameOf(spins_).find("pdb_plugin.dll+0x"), 0u) << NameOf(spins_);
}

// The system's library is not asked at all: Wine's frees memory that it never set.
TEST_F(WindowsNames, ABrokenFileCostsNamesOnly) {
  fs::copy_file(plugins_ / kDebugFile, directory_.path() / kDebugFile);
  fs::resize_file(directory_.path() / kDebugFile,
                  fs::file_size(directory_.path() / kDebugFile) / 2);
  Load();
  EXPECT_FALSE(NameOf(spins_).empty());
}

// A server may be there, which would be asked for each image.
TEST_F(WindowsNames, TheUsersSymbolPathIsNotSearched) {
  const fs::path elsewhere = directory_.path() / "elsewhere";
  fs::create_directory(elsewhere);
  fs::copy_file(plugins_ / kDebugFile, elsewhere / kDebugFile);
  fs::copy_file(plugins_ / "other_pdb_plugin.pdb",
                directory_.path() / kDebugFile);  // so that the library looks for a file
  SetEnvironmentVariableW(L"_NT_SYMBOL_PATH", elsewhere.c_str());
  Load();
  EXPECT_EQ(NameOf(spins_).find("pdb_plugin.dll+0x"), 0u) << NameOf(spins_);
  SetEnvironmentVariableW(L"_NT_SYMBOL_PATH", nullptr);
}

TEST_F(WindowsNames, NobodyWaitsForWhoeverAsksTheSystem) {
  fs::copy_file(plugins_ / kDebugFile, directory_.path() / kDebugFile);
  Load();
  SystemSymbolizer symbolizer;
  std::string name_meanwhile;
  NativePlatform::Files().VisitSymbols(module_.path, [&](auto&&...) {
    std::thread([&] { name_meanwhile = NameOf(symbolizer, spins_); }).join();
    return false;
  });
  EXPECT_EQ(name_meanwhile.find("pdb_plugin.dll+0x"), 0u) << name_meanwhile;
  EXPECT_EQ(NameOf(symbolizer, spins_), "pdb_plugin::Spins");
}

// The mapping's build id is what a symbol server knows the file by, said by DbgHelp.
TEST_F(WindowsNames, TheBuildIdIsTheFilesGuidAndAge) {
  fs::copy_file(plugins_ / kDebugFile, directory_.path() / kDebugFile);
  Load();
  int session = 0;
  ASSERT_NE(SymInitializeW(&session, nullptr, FALSE), 0);
  const DWORD64 base = SymLoadModuleExW(&session, nullptr, (directory_.path() / kImage).c_str(),
                                        nullptr, 0x180000000, 0, nullptr, 0);
  IMAGEHLP_MODULEW64 module = {};
  module.SizeOfStruct = sizeof(module);
  EXPECT_NE(SymGetModuleInfoW64(&session, base, &module), 0);
  SymCleanup(&session);
  const GUID& guid = module.PdbSig70;
  std::string id = absl::StrFormat("%08x%04x%04x", guid.Data1, guid.Data2, guid.Data3);
  for (const unsigned char byte : guid.Data4) id += absl::StrFormat("%02x", byte);
  EXPECT_EQ(module_.build_id, id + absl::StrFormat("%x", module.PdbAge));
}

// Works in the image while it is being profiled; whether the profile has the name of the function
// that only the PDB file knows.
bool IsInAProfile(const fs::path& directory, Address work_address, bool use_system_library) {
  Profiler profiler({.sampling = {.cpu_frequency_hz = 1000},
                     .exporter = {.directory = (directory / "profiles").string()}},
                    {.symbolizer = SystemSymbolizer({.use_system_library = use_system_library})});
  EXPECT_TRUE(profiler.Start().ok());
  {
    const Registration registration = profiler.RegisterThread("worker");
    // NOLINTNEXTLINE(performance-no-int-to-ptr)
    const auto work = reinterpret_cast<unsigned long long (*)(unsigned long long)>(work_address);
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (profiler.stats().samples < 20 && std::chrono::steady_clock::now() < end)
      EXPECT_NE(work(1'000'000), 0u);
  }
  EXPECT_TRUE(profiler.Stop().ok());
  const std::vector<PprofProfile> profiles = WrittenProfiles(directory / "profiles");
  EXPECT_FALSE(profiles.empty());
  return ShowFunction(profiles, "pdb_plugin::Spins");
}

// What a user sees.
TEST_F(WindowsNames, AreInAProfile) {
  fs::copy_file(plugins_ / kDebugFile, directory_.path() / kDebugFile);
  Load();
  EXPECT_TRUE(IsInAProfile(directory_.path(), work_, true));
}

TEST_F(WindowsNames, AreNotAskedForByASymbolizerWithoutTheSystemsLibrary) {
  fs::copy_file(plugins_ / kDebugFile, directory_.path() / kDebugFile);
  Load();
  EXPECT_FALSE(IsInAProfile(directory_.path(), work_, false));
}

}  // namespace
}  // namespace strobe::testing
