// The contract of a Platform's file functions as tests. A port to another operating system:
//
//   // In namespace strobe::testing:
//   INSTANTIATE_TYPED_TEST_SUITE_P(MySystem, PlatformFilesConformance, MyPlatform);
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "strobe/core/module_map.h"
#include "strobe/platform/platform.h"
#include "strobe/symbolize/symbol_files.h"

namespace strobe::testing {

template <Platform P>
class PlatformFilesConformance : public ::testing::Test {
 protected:
  PlatformFilesConformance()
      : path_(std::filesystem::path(::testing::TempDir()) /
              ("strobe_files_" +
               std::string(::testing::UnitTest::GetInstance()->current_test_info()->name()))) {
    std::filesystem::remove(path_);
  }
  ~PlatformFilesConformance() override { std::filesystem::remove(path_); }

  void Append(std::string_view text) {
    std::ofstream(path_, std::ios::binary | std::ios::app) << text;
  }
  [[nodiscard]] std::string Path() const { return path_.string(); }
  static std::string Read(const FileSource& file, std::uint64_t offset, std::size_t bytes) {
    std::string text(bytes, '?');
    return file.ReadAt(offset, std::as_writable_bytes(std::span(text))) ? text : "nothing";
  }

 private:
  std::filesystem::path path_;
};
TYPED_TEST_SUITE_P(PlatformFilesConformance);
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(PlatformFilesConformance);

TYPED_TEST_P(PlatformFilesConformance, AFileIsReadWholeOrNotAtAll) {
  this->Append("0123456789");
  const std::unique_ptr<FileSource> file = TypeParam::Files().Open(this->Path());
  ASSERT_NE(file, nullptr);
  EXPECT_EQ(file->size(), 10u);
  EXPECT_EQ(this->Read(*file, 0, 10), "0123456789");
  EXPECT_EQ(this->Read(*file, 7, 2), "78");
  EXPECT_EQ(this->Read(*file, 10, 0), "");
  EXPECT_EQ(this->Read(*file, 9, 2), "nothing");
  EXPECT_EQ(this->Read(*file, ~std::uint64_t{0}, 2), "nothing");
}

// The profiler may keep a name that it has read from a file while the file's identity is the same.
TYPED_TEST_P(PlatformFilesConformance, AFileThatChangesIsAnother) {
  this->Append("one");
  const auto identity = [&] { return TypeParam::Files().Open(this->Path())->identity(); };
  const std::string before = identity();
  EXPECT_EQ(identity(), before);
  this->Append("two");
  EXPECT_NE(identity(), before);
}

TYPED_TEST_P(PlatformFilesConformance, OnlyRegularFilesAreOpened) {
  EXPECT_EQ(TypeParam::Files().Open(this->Path()), nullptr) << "there is none";
  EXPECT_EQ(TypeParam::Files().Open(::testing::TempDir()), nullptr) << "a directory";
  EXPECT_EQ(TypeParam::Files().Open(""), nullptr);
}

// The vdso is the only loaded module without a file; its bytes are the mapped bytes. Bounds other
// than its own give nothing.
TYPED_TEST_P(PlatformFilesConformance, TheVdsoIsReadFromMemory) {
  const SymbolFiles& files = TypeParam::Files();
  for (const Module& module : TypeParam::Modules()) {
    const std::span<const std::byte> vdso =
        files.OwnVdso(module.load_bias, module.start, module.limit);
    EXPECT_EQ(!vdso.empty(), module.kind == ModuleKind::kVdso) << module.path;
    EXPECT_TRUE(files.OwnVdso(module.load_bias + 0x1000, module.start, module.limit).empty());
    EXPECT_TRUE(files.OwnVdso(module.load_bias, module.start, module.start).empty());
    if (vdso.empty()) continue;
    std::array<std::uint8_t, 64> mapped{};
    ASSERT_EQ(TypeParam::ReadMemory(module.start, mapped), mapped.size());
    EXPECT_TRUE(std::ranges::equal(vdso.first(mapped.size()), std::as_bytes(std::span(mapped))));
  }
}

TYPED_TEST_P(PlatformFilesConformance, WhatIsNoImageHasNoSymbols) {
  this->Append("no image");
  for (const std::string& path : {this->Path(), std::string("/nonexistent/image")}) {
    EXPECT_TRUE(TypeParam::Files().VisitSymbols(
        path, [&](std::uint64_t /*address*/, std::uint64_t /*bytes*/, std::string_view name) {
          ADD_FAILURE() << name;
          return true;
        }));
    EXPECT_TRUE(TypeParam::Files().VisitLines(path, std::array<std::uint64_t, 1>{0x1000},
                                              [&](std::uint64_t /*address*/, auto /*frames*/) {
                                                ADD_FAILURE() << "no lines are there";
                                                return true;
                                              }));
  }
}

REGISTER_TYPED_TEST_SUITE_P(PlatformFilesConformance, AFileIsReadWholeOrNotAtAll,
                            AFileThatChangesIsAnother, OnlyRegularFilesAreOpened,
                            TheVdsoIsReadFromMemory, WhatIsNoImageHasNoSymbols);

}  // namespace strobe::testing
