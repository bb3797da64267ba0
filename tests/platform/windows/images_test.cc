#include "../../../src/platform/windows/images.h"

#include <windows.h>
// After it.
#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "gtest/gtest.h"

namespace strobe::internal {
namespace {

TEST(WindowsImagesTest, TheProgramComesFirst) {
  const std::vector<Module> modules = LoadedModules();
  ASSERT_FALSE(modules.empty());
  EXPECT_EQ(modules[0].path, PathOfImage(nullptr));
  const auto here = reinterpret_cast<Address>(&ReadOwnMemory);
  EXPECT_GE(here, modules[0].start);
  EXPECT_LT(here, modules[0].limit);
}

TEST(WindowsImagesTest, AnImageThatIsLoadedIsListed) {
  constexpr const wchar_t* kLibrary = L"winmm.dll";
  LoadedModules();
  if (GetModuleHandleW(kLibrary) != nullptr) GTEST_SKIP() << "the library is loaded already";
  const std::uint64_t before = ImageVersion();
  const HMODULE library = LoadLibraryW(kLibrary);
  if (library == nullptr) GTEST_SKIP() << "no such library on this machine";
  EXPECT_GT(ImageVersion(), before);
  const std::string path = PathOfImage(library);
  const auto has_it = [&] {
    return std::ranges::any_of(LoadedModules(),
                               [&](const Module& module) { return module.path == path; });
  };
  EXPECT_TRUE(has_it());
  const std::uint64_t loaded = ImageVersion();
  FreeLibrary(library);
  EXPECT_GT(ImageVersion(), loaded);
}

TEST(WindowsImagesTest, MemoryThatIsNotThereCannotBeRead) {
  const std::array<std::uint8_t, 4> bytes = {1, 2, 3, 4};
  std::array<std::uint8_t, 4> copy{};
  EXPECT_EQ(ReadOwnMemory(reinterpret_cast<Address>(bytes.data()), copy), 4u);
  EXPECT_EQ(copy, bytes);
  EXPECT_EQ(ReadOwnMemory(0, copy), 0u);
  EXPECT_EQ(ReadOwnMemory(~Address{0} - 1, copy), 0u);
}

}  // namespace
}  // namespace strobe::internal
