#include "strobe/symbolize/debug_frame.h"

#include <cstring>
#include <string>

#include "../../../src/platform/linux/files/system_library.h"
#include "../loaded_image.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

namespace strobe {
namespace {

Module LoadedModule(const std::string& name) {
  const testing::Library library(
      absl::StrCat(STROBE_FIXTURE_DIRECTORY, "/libfixture_", name, ".so"));
  return testing::ModuleAt(library.Symbol("fixture_c_function"));
}

TEST(DebugFrame, IsReadFromTheModulesFileCompressedOrNot) {
  const std::vector<std::uint8_t> bytes =
      ReadDebugFrame(LoadedModule("debug_frame"), NativePlatform::Files());
  if (bytes.empty()) GTEST_SKIP() << "this compiler writes no .debug_frame";
  ASSERT_GT(bytes.size(), 8U);
  std::uint32_t id = 0;
  std::memcpy(&id, bytes.data() + 4, sizeof(id));
  EXPECT_EQ(id, 0xFFFFFFFF) << "the first entry is a CIE";
  EXPECT_EQ(ReadDebugFrame(LoadedModule("compressed_debug_frame"), NativePlatform::Files()).size(),
            bytes.size());
#ifdef STROBE_HAS_ZSTD_FIXTURE
  if (internal::FindFunction<void()>("libzstd.so.1", "ZSTD_decompress") == nullptr)
    GTEST_SKIP() << "no libzstd on this machine";
  EXPECT_EQ(ReadDebugFrame(LoadedModule("zstd_debug_frame"), NativePlatform::Files()), bytes);
#endif
}

TEST(DebugFrame, IsNothingWhereTheFileIsAnotherOrHasNone) {
  EXPECT_TRUE(ReadDebugFrame(LoadedModule("stripped"), NativePlatform::Files()).empty());
  Module module = LoadedModule("debug_frame");
  module.build_id = "00";
  EXPECT_TRUE(ReadDebugFrame(module, NativePlatform::Files()).empty());
  module.path = "/nowhere";
  EXPECT_TRUE(ReadDebugFrame(module, NativePlatform::Files()).empty());
}

}  // namespace
}  // namespace strobe
