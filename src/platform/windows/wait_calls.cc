#include "wait_calls.h"

#include <windows.h>
// After it.
#include <algorithm>
#include <array>
#include <cstddef>

#include "library_function.h"

namespace strobe::internal {
namespace {

struct WaitCall {
  const wchar_t* library;
  const char* name;
};

// Each of these functions is a stub, which puts the call's number into a register and enters the
// kernel. While the thread is in there, its program counter is the stub's. A program without
// windows has not loaded win32u.dll.
constexpr std::array kWaitCalls = {
    WaitCall{L"ntdll.dll", "NtWaitForSingleObject"},
    WaitCall{L"ntdll.dll", "NtWaitForMultipleObjects"},
    WaitCall{L"ntdll.dll", "NtSignalAndWaitForSingleObject"},
    WaitCall{L"ntdll.dll", "NtDelayExecution"},
    WaitCall{L"ntdll.dll", "NtWaitForAlertByThreadId"},
    WaitCall{L"ntdll.dll", "NtWaitForKeyedEvent"},
    WaitCall{L"ntdll.dll", "NtRemoveIoCompletion"},
    WaitCall{L"ntdll.dll", "NtRemoveIoCompletionEx"},
    WaitCall{L"ntdll.dll", "NtWaitForWorkViaWorkerFactory"},
    WaitCall{L"ntdll.dll", "NtReplyWaitReceivePort"},
    WaitCall{L"ntdll.dll", "NtAlpcSendWaitReceivePort"},
    WaitCall{L"win32u.dll", "NtUserGetMessage"},
    WaitCall{L"win32u.dll", "NtUserWaitMessage"},
    WaitCall{L"win32u.dll", "NtUserMsgWaitForMultipleObjectsEx"},
};

// The distance between two stubs; Windows 10 and 11 on x64, and Wine.
constexpr Address kStubBytes = 32;

using Stubs = std::array<Address, kWaitCalls.size()>;  // in order; 0 where there is none

Stubs FindStubs() {
  Stubs stubs{};
  std::transform(kWaitCalls.begin(), kWaitCalls.end(), stubs.begin(), [](const WaitCall& call) {
    return reinterpret_cast<Address>(
        FindFunction<void*>(GetModuleHandleW(call.library), call.name));
  });
  std::sort(stubs.begin(), stubs.end());
  return stubs;
}

}  // namespace

bool IsInWaitCall(Address pc) {
  static const Stubs stubs = FindStubs();
  const auto after = std::upper_bound(stubs.begin(), stubs.end(), pc);
  return after != stubs.begin() && *(after - 1) != 0 && pc - *(after - 1) < kStubBytes;
}

}  // namespace strobe::internal
