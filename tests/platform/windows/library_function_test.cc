#include "../../../src/platform/windows/library_function.h"

#include "gtest/gtest.h"

namespace strobe::internal {
namespace {

using GetId = DWORD(WINAPI*)();

TEST(LibraryFunctionTest, FindsFunctionsByName) {
  const HMODULE library = GetModuleHandleW(L"kernel32.dll");
  const auto function = FindFunction<GetId>(library, "GetCurrentProcessId");
  ASSERT_NE(function, nullptr);
  EXPECT_EQ(function(), GetCurrentProcessId());
  EXPECT_EQ(FindFunction<GetId>(library, "NoSuchFunction"), nullptr);
}

TEST(LibraryFunctionTest, NoLibraryHasNone) {
  EXPECT_EQ(FindFunction<GetId>(nullptr, "GetCurrentProcessId"), nullptr);
}

}  // namespace
}  // namespace strobe::internal
