// Names of the stubs of linkage tables, in what the machine's own linker makes of them.

#include <array>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "gtest/gtest.h"
#include "loaded_image.h"

namespace strobe::internal {
namespace {

using testing::Library;
using testing::ModuleAt;
using testing::NameOf;
using testing::SystemSymbolizer;

std::string FixturePath(const std::string& name) {
  return absl::StrCat(STROBE_FIXTURE_DIRECTORY, "/libfixture_linkage_", name, ".so");
}
const std::vector<std::string>& Fixtures() {
  static const std::vector<std::string> names = {STROBE_LINKAGE_FIXTURES};
  return names;
}

// The stubs of a file as objdump names them.
std::map<Address, std::string> StubsByObjdump(const std::string& path) {
  std::map<Address, std::string> stubs;
  const std::string command =
      absl::StrCat("objdump -d -j .plt -j .plt.sec -j .plt.got '", path, "' 2>/dev/null");
  std::FILE* pipe = popen(command.c_str(), "r");
  if (pipe == nullptr) return stubs;
  std::array<char, 1024> line;
  while (std::fgets(line.data(), line.size(), pipe) != nullptr) {
    unsigned long address = 0;
    std::array<char, 1024> name;
    if (std::sscanf(line.data(), "%lx <%1023[^>]>:", &address, name.data()) != 2) continue;
    const std::string text = name.data();
    // "name@plt-0x10" is the head of the table.
    if (text.ends_with("@plt")) stubs[address] = text.substr(0, text.find('@')) + "@plt";
  }
  pclose(pipe);
  return stubs;
}

TEST(LinkageStubTest, EveryStubHasItsTargetsName) {
  for (const std::string& fixture : Fixtures()) {
    const Library library(FixturePath(fixture));
    const Module module = ModuleAt(library.Symbol("fixture_calls"));
    Profile profile;
    profile.modules = {module};
    for (Address address = module.start; address < module.limit; address += 4)
      profile.frames.push_back({address, 0});
    SystemSymbolizer symbolizer;
    std::set<std::string> stubs;
    const Symbols symbols = *symbolizer.Symbolize(profile);
    for (const FunctionSymbol& symbol : symbols.functions) {
      if (absl::EndsWith(symbol.name, "@plt")) stubs.insert(symbol.name);
      EXPECT_TRUE(!absl::EndsWith(symbol.name, "@plt") || symbol.resolved);
    }
    for (const char* name : {"rand@plt", "malloc@plt", "fixture::Replaceable(int)@plt"}) {
      EXPECT_TRUE(stubs.contains(name))
          << fixture << " has no " << name << ", but " << absl::StrJoin(stubs, " ");
    }
  }
}

TEST(LinkageStubTest, AgreesWithObjdump) {
  if (std::system("objdump --version >/dev/null 2>&1") != 0)
    GTEST_SKIP() << "objdump is not installed";
  for (const std::string& fixture : Fixtures()) {
    const std::string path = FixturePath(fixture);
    const Library library(path);
    const Module module = ModuleAt(library.Symbol("fixture_calls"));
    const std::map<Address, std::string> expected = StubsByObjdump(path);
    if (expected.empty()) GTEST_SKIP() << "this objdump does not know the processor";
    ASSERT_GE(expected.size(), 3u) << path;
    for (const auto& [address, name] : expected) {
      const bool is_eight_bytes = expected.contains(address + 8);
      for (const Address offset : {0, is_eight_bytes ? 7 : 5}) {
        EXPECT_EQ(NameOf(module, module.load_bias + address + offset).system_name, name)
            << path << " " << offset;
      }
    }
  }
}

TEST(LinkageStubTest, FunctionsThatTheLibraryChoosesForItself) {
  // The C library calls its own memcpy and the like through stubs whose slots have no symbol.
  const Module module = ModuleAt(reinterpret_cast<Address>(dlsym(RTLD_DEFAULT, "strtoul")));
  const std::map<Address, std::string> expected = StubsByObjdump(module.path);
  int chosen = 0;
  for (const auto& [address, name] : expected) {
    const FunctionSymbol symbol = NameOf(module, module.load_bias + address);
    if (absl::StartsWith(name, "*ABS*")) {
      EXPECT_TRUE(symbol.resolved && absl::EndsWith(symbol.name, "@plt"))
          << symbol.name << " for " << address;
      ++chosen;
    } else {
      EXPECT_EQ(symbol.name, name);
    }
  }
  if (chosen == 0) GTEST_SKIP() << "no such stub in " << module.path;
}

TEST(LinkageStubTest, VersionsAreNoPartOfAName) {
  for (const std::string& fixture : Fixtures()) {
    const Library library(FixturePath(fixture));
    const auto address_of =
        reinterpret_cast<unsigned long (*)(int)>(library.Symbol("fixture_address"));
    for (const int version : {1, 2}) {
      const FunctionSymbol symbol = NameOf(ModuleAt(address_of(version)), address_of(version));
      EXPECT_EQ(symbol.name, "fixture_function") << fixture;
      EXPECT_EQ(symbol.system_name, "fixture_function") << fixture;
    }
  }
}

}  // namespace
}  // namespace strobe::internal
