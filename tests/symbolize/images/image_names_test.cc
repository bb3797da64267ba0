#include "../../../src/symbolize/images/image_names.h"

#include <string>
#include <utility>
#include <vector>

#include "../elf_bytes.h"
#include "../memory_files.h"
#include "../pe_image_bytes.h"
#include "gtest/gtest.h"

namespace strobe::internal {
namespace {

using testing::Bytes;
using testing::ElfBytes;

FunctionTable TableOf(const std::vector<std::pair<std::uint64_t, std::string>>& functions) {
  std::vector<FunctionTable::Function> all;
  std::vector<char> names = {0};
  for (const auto& [address, name] : functions) {
    all.push_back({.address = address,
                   .end = address + 0x10,
                   .name = static_cast<std::uint32_t>(names.size())});
    names.insert(names.end(), name.begin(), name.end());
    names.push_back(0);
  }
  return FunctionTable(std::move(all), std::move(names));
}

TEST(ImageNamesTest, ASymbolComesBeforeAStub) {
  ImageNames names;
  EXPECT_TRUE(names.empty());
  EXPECT_EQ(names.Find(0x1000), "");
  names.functions = TableOf({{0x1000, "f"}});
  names.more_functions = TableOf({{0x1000, "other"}, {0x2000, "g"}});
  names.stubs = TableOf({{0x2000, "g@plt"}, {0x3000, "h@plt"}});
  EXPECT_EQ(names.Find(0x1008), "f");
  EXPECT_EQ(names.Find(0x2000), "g");
  EXPECT_EQ(names.Find(0x3000), "h@plt");
  EXPECT_EQ(names.Find(0x4000), "");
  EXPECT_FALSE(names.empty());
  EXPECT_GT(names.memory_bytes(), 0u);
}

class ReadElfNamesTest : public ::testing::Test {
 protected:
  ReadElfNamesTest() {
    module_.path = "/lib/x.so";
    module_.build_id = "abcdef01";
    search_.debug_directories = {"/debug"};
  }
  // An image with functions of these names, each of 16 bytes, one behind the other.
  static Bytes Image(std::uint32_t table, const std::vector<std::string>& functions) {
    ElfBytes elf;
    elf.AddBuildId({0xAB, 0xCD, 0xEF, 0x01});
    elf.Add({.name = ".text",
             .flags = ElfBytes::kLoaded | ElfBytes::kExecutable,
             .address = 0x1000,
             .content = Bytes(0x100, 0x90)});
    std::vector<ElfBytes::Symbol> symbols;
    for (const std::string& name : functions)
      symbols.push_back(
          {.name = name, .value = 0x1000 + 0x10 * symbols.size(), .bytes = 0x10, .section = 2});
    elf.AddSymbols(table, symbols);
    return elf.File();
  }
  ImageNames Read() { return ReadElfNames(module_, files_, search_); }

  Module module_;
  testing::MemoryFiles files_;
  SymbolSearch search_;
};

TEST_F(ReadElfNamesTest, TheFilesFullSymbolsAreEnough) {
  files_.Write("/lib/x.so", Image(ElfBytes::kSymtab, {"f", "g"}));
  files_.Write("/debug/.build-id/ab/cdef01.debug", Image(ElfBytes::kSymtab, {"other"}));
  const ImageNames names = Read();
  EXPECT_TRUE(names.has_image);
  EXPECT_TRUE(names.is_final);
  EXPECT_EQ(names.Find(0x1000), "f");
  EXPECT_EQ(names.Find(0x1018), "g");
  EXPECT_EQ(names.Find(0x1020), "");
}

TEST_F(ReadElfNamesTest, SeparateSymbolsComeBeforeDynamicOnes) {
  files_.Write("/lib/x.so", Image(ElfBytes::kDynsym, {"exported"}));
  EXPECT_EQ(Read().Find(0x1000), "exported");
  files_.Write("/debug/.build-id/ab/cdef01.debug", Image(ElfBytes::kSymtab, {"f", "hidden"}));
  EXPECT_EQ(Read().Find(0x1000), "f");
  EXPECT_EQ(Read().Find(0x1010), "hidden");
}

TEST_F(ReadElfNamesTest, AMissingFileMayComeLater) {
  const ImageNames names = Read();
  EXPECT_FALSE(names.has_image);
  EXPECT_FALSE(names.is_final);
  EXPECT_TRUE(names.empty());
  files_.Write("/lib/x.so", Bytes(100, 1));
  EXPECT_FALSE(Read().has_image) << "it is no image";
}

TEST(ReadPeNamesTest, AFileThatIsReadIsFinal) {
  Module module;
  module.path = "C:/plugin.dll";
  module.format = ImageFormat::kPe;
  module.build_id = "0123456789abcdeff0f1f2f3f4f5f6f7b";
  testing::MemoryFiles files;
  EXPECT_FALSE(ReadPeNames(module, files, {}, true).is_final);
  files.Write(module.path, testing::ImageBytes().file());
  const ImageNames names = ReadPeNames(module, files, {}, true);
  EXPECT_TRUE(names.has_image);
  EXPECT_TRUE(names.is_final) << "though it has no names";
}

}  // namespace
}  // namespace strobe::internal
