#include "../../../src/platform/windows/wait_calls.h"

#include <windows.h>
// After it.
#include "../../../src/platform/windows/library_function.h"
#include "gtest/gtest.h"

namespace strobe::internal {
namespace {

Address StubOf(const char* name) {
  return reinterpret_cast<Address>(FindFunction<void*>(GetModuleHandleW(L"ntdll.dll"), name));
}

TEST(IsInWaitCallTest, IsTrueWithinTheStubsOfWaits) {
  for (const char* const name :
       {"NtWaitForSingleObject", "NtWaitForMultipleObjects", "NtDelayExecution"}) {
    const Address stub = StubOf(name);
    ASSERT_NE(stub, 0u) << name;
    EXPECT_TRUE(IsInWaitCall(stub)) << name;
    EXPECT_TRUE(IsInWaitCall(stub + 20)) << name;
  }
}

TEST(IsInWaitCallTest, OtherCodeRuns) {
  EXPECT_FALSE(IsInWaitCall(0));
  EXPECT_FALSE(IsInWaitCall(~Address{0}));
  EXPECT_FALSE(IsInWaitCall(StubOf("NtClose")));
  EXPECT_FALSE(IsInWaitCall(reinterpret_cast<Address>(&StubOf)));
}

}  // namespace
}  // namespace strobe::internal
