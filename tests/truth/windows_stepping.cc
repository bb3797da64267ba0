#include "windows_stepping.h"

namespace strobe::testing {
namespace {

constexpr DWORD kTrapFlag = 0x100;

struct Stepping {
  StepObserver* observer = nullptr;
  void (*code)(unsigned) = nullptr;
  DWORD64 raise_exception = 0;
  bool has_enough = false;
};
Stepping stepping;

LONG CALLBACK OnStep(EXCEPTION_POINTERS* exception) {
  if (exception->ExceptionRecord->ExceptionCode != static_cast<DWORD>(EXCEPTION_SINGLE_STEP))
    return EXCEPTION_CONTINUE_SEARCH;
  if (stepping.has_enough) return EXCEPTION_CONTINUE_EXECUTION;
  CONTEXT& context = *exception->ContextRecord;
  stepping.has_enough =
      !stepping.observer->BeforeInstruction(context, internal::is_stepping_interrupted);
  internal::is_stepping_interrupted =
      !stepping.has_enough && context.Rip == stepping.raise_exception;
  if (!stepping.has_enough && !internal::is_stepping_interrupted) context.EFlags |= kTrapFlag;
  return EXCEPTION_CONTINUE_EXECUTION;
}

DWORD WINAPI RunStepped(void* /*argument*/) {
  for (unsigned seed = 1; !stepping.has_enough; ++seed) {
    internal::is_stepping_interrupted = true;  // whatever the last turn did with the flag
    ContinueStepping();
    stepping.code(seed);
  }
  return 0;
}

}  // namespace

void RunSteps(StepObserver& observer, void (*code)(unsigned seed)) {
  stepping = {.observer = &observer,
              .code = code,
              .raise_exception = reinterpret_cast<DWORD64>(
                  GetProcAddress(GetModuleHandleW(L"kernelbase.dll"), "RaiseException"))};
  internal::is_stepping_interrupted = true;
  void* const handler = AddVectoredExceptionHandler(1, &OnStep);
  const HANDLE thread = CreateThread(nullptr, 0, &RunStepped, nullptr, 0, nullptr);
  WaitForSingleObject(thread, INFINITE);
  CloseHandle(thread);
  RemoveVectoredExceptionHandler(handler);
}

}  // namespace strobe::testing
