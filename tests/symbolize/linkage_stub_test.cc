// Names of the stubs of linkage tables, in what the machine's own linker makes of them.
#include "../../src/symbolize/linkage_stub.h"

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

TEST(LinkageStubTest, Aarch64OnEveryHost) {
  // adrp x16, +0x20000; ldr x17, [x16, #8]; add x16, x16, #8; br x17, with the head of the table
  // before and a signed stub after it.
  const std::vector<std::uint32_t> code = {
      0xA9BF7BF0, 0xF00000F0, 0xF947FE11, 0x913FE210, 0xD61F0220, 0xD503201F,
      0xD503201F, 0xD503201F, 0x90000110, 0xF9400611, 0x91002210, 0xD61F0220,  //
      0xD503245F, 0x90FFFFF0, 0xF9400A11, 0x91004210, 0xD503219F, 0xD61F0220};
  const std::vector<LinkageStub> stubs =
      FindAarch64LinkageStubs(0x12C0, std::as_bytes(std::span(code)));
  ASSERT_EQ(stubs.size(), 3u);
  EXPECT_EQ(stubs[1].address, 0x12E0u);
  EXPECT_EQ(stubs[1].end, 0x12F0u);
  EXPECT_EQ(stubs[1].slot, 0x21008u);
  EXPECT_EQ(stubs[2].address, 0x12F0u) << "the mark of a branch's target belongs to it";
  EXPECT_EQ(stubs[2].end, 0x1308u);
  EXPECT_EQ(stubs[2].slot, std::uint64_t{0x1000} - 0x4000 + 0x10);
  for (std::size_t bytes = 0; bytes < code.size() * 4; ++bytes) {
    for (const LinkageStub& stub :
         FindAarch64LinkageStubs(0x12C0, std::as_bytes(std::span(code)).first(bytes))) {
      EXPECT_LE(stub.end, 0x12C0 + bytes);
    }
  }
}

TEST(LinkageStubTest, X86OnEveryHost) {
  // endbr64; bnd jmp *0x2f86(%rip); nopl, then two stubs of eight bytes, the last cut short.
  const std::vector<unsigned char> code = {0xF3, 0x0F, 0x1E, 0xFA, 0xF2, 0xFF, 0x25, 0x85, 0x2F,
                                           0,    0,    0x0F, 0x1F, 0x44, 0,    0,    0xFF, 0x25,
                                           0xF0, 0xFF, 0xFF, 0xFF, 0x66, 0x90, 0xFF, 0x25, 1};
  const std::vector<LinkageStub> stubs =
      FindX86LinkageStubs(0x1070, std::as_bytes(std::span(code)));
  ASSERT_EQ(stubs.size(), 2u);
  EXPECT_EQ(stubs[0].address, 0x1070u);
  EXPECT_EQ(stubs[0].end, 0x1080u);
  EXPECT_EQ(stubs[0].slot, 0x107B + 0x2F85u);
  EXPECT_EQ(stubs[1].address, 0x1080u);
  EXPECT_EQ(stubs[1].slot, 0x1086 - 0x10u);
}

}  // namespace
}  // namespace strobe::internal
