#include "../../../src/platform/linux/files/system_library.h"

#include <unistd.h>

#include "gtest/gtest.h"

namespace strobe::internal {
namespace {

TEST(FindFunctionTest, FindsAFunctionOfALibraryThatIsThere) {
  Dl_info own{};
  ASSERT_NE(dladdr(reinterpret_cast<const void*>(&getpid), &own), 0);
  auto* const function = FindFunction<pid_t()>(own.dli_fname, "getpid");
  if (getauxval(AT_BASE) == 0) {
    EXPECT_EQ(function, nullptr) << "a static program has no loader";
  } else {
    ASSERT_NE(function, nullptr);
    EXPECT_EQ(function(), getpid());
  }
  EXPECT_EQ(FindFunction<pid_t()>(own.dli_fname, "no_such_function"), nullptr);
}

TEST(FindFunctionTest, ALibraryThatIsNotThereHasNone) {
  EXPECT_EQ(FindFunction<void()>("libno_such_library.so.1", "getpid"), nullptr);
}

}  // namespace
}  // namespace strobe::internal
