#include "../../../src/symbolize/images/kept_files.h"

#include <memory>
#include <string>
#include <vector>

#include "../memory_files.h"
#include "gtest/gtest.h"

namespace strobe::internal {
namespace {

using testing::MemoryFile;

Module ModuleOf(const std::string& build_id, std::uint64_t file_version = 0) {
  Module module{.path = "/lib/x.so", .build_id = build_id};
  module.file_version = file_version;
  return module;
}
std::shared_ptr<const FileSource> NewFile(const std::string& identity = "") {
  return std::make_shared<const MemoryFile>(testing::Bytes{1, 2, 3}, identity);
}

TEST(KeptFiles, AreThoseThatTheirOwnersKeep) {
  const Module module = ModuleOf("aa01");
  EXPECT_EQ(KeptFileOf(module), nullptr);
  std::shared_ptr<const FileSource> file = NewFile();
  KeepFile(module, file);
  EXPECT_EQ(KeptFileOf(module), file);
  EXPECT_EQ(KeptFileOf(ModuleOf("aa02")), nullptr);
  const std::shared_ptr<const FileSource> copy = NewFile();
  KeepFile(module, copy);
  EXPECT_EQ(KeptFileOf(module), file) << "the first one stays";
  file.reset();
  EXPECT_EQ(KeptFileOf(module), nullptr) << "its owner has closed it";
  KeepFile(module, copy);
  EXPECT_EQ(KeptFileOf(module), copy);
}

TEST(KeptFiles, WithoutABuildIdTheVersionTells) {
  const std::shared_ptr<const FileSource> old_file = NewFile("old");
  const std::shared_ptr<const FileSource> new_file = NewFile("new");
  EXPECT_NE(VersionOfFile(*old_file), VersionOfFile(*new_file));
  EXPECT_NE(VersionOfFile(*old_file), 0u);
  for (const auto& file : {old_file, new_file}) KeepFile(ModuleOf("", VersionOfFile(*file)), file);
  EXPECT_EQ(KeptFileOf(ModuleOf("", VersionOfFile(*old_file))), old_file);
  EXPECT_EQ(KeptFileOf(ModuleOf("", VersionOfFile(*new_file))), new_file);
  EXPECT_EQ(KeptFileOf(ModuleOf("")), nullptr);
  KeepFile(ModuleOf(""), old_file);
  EXPECT_EQ(KeptFileOf(ModuleOf("")), nullptr) << "nothing tells it from another";
}

TEST(KeptFiles, CodeWithoutAFileHasNone) {
  const std::shared_ptr<const FileSource> file = NewFile();
  Module module = ModuleOf("aa03");
  KeepFile(module, file);
  module.kind = ModuleKind::kVdso;
  EXPECT_EQ(KeptFileOf(module), nullptr);
  module.kind = ModuleKind::kProgram;
  EXPECT_EQ(KeptFileOf(module), file);
}

TEST(KeptFiles, AreLimited) {
  std::vector<std::shared_ptr<const FileSource>> files;
  for (std::size_t i = 0; i < kMaxKeptFiles; ++i) {
    files.push_back(NewFile());
    KeepFile(ModuleOf("bb" + std::to_string(i)), files.back());
  }
  const std::shared_ptr<const FileSource> more = NewFile();
  KeepFile(ModuleOf("cc"), more);
  EXPECT_EQ(KeptFileOf(ModuleOf("cc")), nullptr);
  files.clear();
  KeepFile(ModuleOf("cc"), more);
  EXPECT_EQ(KeptFileOf(ModuleOf("cc")), more) << "closed files make room";
}

}  // namespace
}  // namespace strobe::internal
