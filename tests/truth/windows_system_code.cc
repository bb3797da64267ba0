#include <windows.h>
// After it.
#include <array>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "windows_code.h"

namespace strobe::testing {
namespace {

template <class Function>
Function* FunctionOf(const wchar_t* library, const char* name) {
  return reinterpret_cast<Function*>(
      reinterpret_cast<void*>(GetProcAddress(LoadLibraryW(library), name)));
}

unsigned Files() {
  std::array<wchar_t, MAX_PATH> path{};
  unsigned sum = GetModuleFileNameW(nullptr, path.data(), MAX_PATH);
  sum += GetFileAttributesW(path.data());
  const HANDLE file =
      CreateFileW(path.data(), GENERIC_READ, FILE_SHARE_READ, nullptr, OPEN_EXISTING, 0, nullptr);
  std::array<unsigned char, 256> bytes{};
  DWORD read = 0;
  if (ReadFile(file, bytes.data(), bytes.size(), &read, nullptr) != 0) sum += bytes[0x3C];
  LARGE_INTEGER size{};
  if (GetFileSizeEx(file, &size) != 0) sum += size.LowPart;
  CloseHandle(file);
  return sum + GetCurrentDirectoryW(MAX_PATH, path.data());
}

unsigned Memory(unsigned seed) {
  void* const pages = VirtualAlloc(nullptr, 65536, MEM_RESERVE | MEM_COMMIT, PAGE_READWRITE);
  MEMORY_BASIC_INFORMATION information{};
  VirtualQuery(pages, &information, sizeof(information));
  VirtualFree(pages, 0, MEM_RELEASE);
  const HANDLE heap = HeapCreate(0, 0, 0);
  std::array<void*, 16> blocks{};
  for (std::size_t i = 0; i < blocks.size(); ++i)
    blocks[i] = HeapAlloc(heap, 0, 16 + (seed * 31 + i * 517) % 300);
  for (std::size_t i = 0; i < blocks.size(); i += 2)
    blocks[i] = HeapReAlloc(heap, 0, blocks[i], 400);
  for (std::size_t i = 0; i < blocks.size(); i += 3) HeapFree(heap, 0, blocks[i]);
  HeapDestroy(heap);
  return static_cast<unsigned>(information.RegionSize);
}

unsigned Locks() {
  static INIT_ONCE once = INIT_ONCE_STATIC_INIT;
  once = INIT_ONCE_STATIC_INIT;
  unsigned sum = 0;
  InitOnceExecuteOnce(
      &once,
      [](INIT_ONCE*, void* argument, void**) -> BOOL {
        *static_cast<unsigned*>(argument) += GetTickCount() | 1u;
        return TRUE;
      },
      &sum, nullptr);
  CRITICAL_SECTION section;
  InitializeCriticalSection(&section);
  EnterCriticalSection(&section);
  LeaveCriticalSection(&section);
  DeleteCriticalSection(&section);
  const HANDLE event = CreateEventW(nullptr, TRUE, FALSE, nullptr);
  sum += WaitForSingleObject(event, 0);
  SetEvent(event);
  sum += WaitForSingleObject(event, 1000);
  CloseHandle(event);
  Sleep(0);
  LARGE_INTEGER now{};
  QueryPerformanceCounter(&now);
  return sum + now.LowPart;
}

unsigned Texts(unsigned seed) {
  std::array<wchar_t, 128> wide{};
  std::array<char, 256> narrow{};
  unsigned sum = static_cast<unsigned>(MultiByteToWideChar(CP_UTF8, 0,
                                                           "Stra\xC3\x9F"
                                                           "e und mehr",
                                                           -1, wide.data(), wide.size()));
  LCMapStringW(LOCALE_INVARIANT, LCMAP_UPPERCASE, wide.data(), -1, wide.data(), wide.size());
  sum += static_cast<unsigned>(
      CompareStringW(LOCALE_INVARIANT, NORM_IGNORECASE, wide.data(), -1, L"strasse", -1));
  sum += static_cast<unsigned>(WideCharToMultiByte(CP_ACP, 0, wide.data(), -1, narrow.data(),
                                                   narrow.size(), nullptr, nullptr));
  SYSTEMTIME time{};
  GetSystemTime(&time);
  sum += static_cast<unsigned>(
      GetDateFormatW(LOCALE_INVARIANT, 0, &time, L"yyyy-MM-dd", wide.data(), wide.size()));
  sum += FormatMessageW(FORMAT_MESSAGE_FROM_SYSTEM, nullptr, ERROR_FILE_NOT_FOUND + seed % 3, 0,
                        wide.data(), wide.size(), nullptr);
  sum += GetEnvironmentVariableW(L"PATH", wide.data(), wide.size());
  return sum;
}

unsigned Registry() {
  HKEY key = nullptr;
  if (RegOpenKeyExW(HKEY_LOCAL_MACHINE, L"Software\\Microsoft\\Windows NT\\CurrentVersion", 0,
                    KEY_READ, &key) != ERROR_SUCCESS)
    return 0;
  std::array<unsigned char, 256> value{};
  DWORD bytes = value.size();
  RegQueryValueExW(key, L"CurrentBuild", nullptr, nullptr, value.data(), &bytes);
  RegCloseKey(key);
  return bytes;
}

int CompareBytes(const void* a, const void* b) {
  return *static_cast<const unsigned char*>(a) - *static_cast<const unsigned char*>(b);
}

// The other C library, which nothing here is linked with.
unsigned OtherCLibrary(unsigned seed) {
  using Sort = void(void*, std::size_t, std::size_t, int (*)(const void*, const void*));
  static auto* const sort = FunctionOf<Sort>(L"ucrtbase.dll", "qsort");
  static auto* const to_double = FunctionOf<double(const char*, char**)>(L"ucrtbase.dll", "strtod");
  static auto* const duplicate = FunctionOf<char*(const char*)>(L"ucrtbase.dll", "_strdup");
  static auto* const release = FunctionOf<void(void*)>(L"ucrtbase.dll", "free");
  static auto* const tangent = FunctionOf<double(double)>(L"ucrtbase.dll", "tan");
  std::array<unsigned char, 32> bytes{};
  for (std::size_t i = 0; i < bytes.size(); ++i)
    bytes[i] = static_cast<unsigned char>((seed + i) * 2654435761u >> 24);
  sort(bytes.data(), bytes.size(), 1, &CompareBytes);
  char* const copy = duplicate("12345.678e-3 and more");
  const double value = to_double(copy, nullptr) + tangent(bytes[7]);
  release(copy);
  return bytes[16] + static_cast<unsigned>(static_cast<std::int64_t>(value * 1000));
}

// All mathematical functions, because their machine code is unusual.
unsigned Mathematics(unsigned seed) {
  static const auto functions = [] {
    std::vector<double (*)(double)> found;
    for (const wchar_t* library : {L"ucrtbase.dll", L"msvcrt.dll"}) {
      for (const char* name :
           {"acos",  "acosh", "asin", "asinh",  "atan",      "atanh", "cbrt",  "ceil",   "cos",
            "cosh",  "erf",   "erfc", "exp",    "exp2",      "expm1", "floor", "lgamma", "log",
            "log10", "log1p", "log2", "logb",   "nearbyint", "rint",  "round", "sin",    "sinh",
            "sqrt",  "tan",   "tanh", "tgamma", "trunc",     "_j0",   "_j1",   "_y0",    "_y1"}) {
        if (auto* const function = FunctionOf<double(double)>(library, name))
          found.push_back(function);
      }
    }
    return found;
  }();
  double sum = 0;
  for (std::size_t i = 0; i < functions.size(); ++i) {
    sum += functions[i](0.1 + (seed * 7 + i) % 9 * 0.1) > 0 ? 1 : 0;
    sum += functions[i]((seed * 13 + i * 5) % 1000 * 1.25) > 1 ? 1 : 0;
  }
  static auto* const power = FunctionOf<double(double, double)>(L"ucrtbase.dll", "pow");
  static auto* const remainder = FunctionOf<double(double, double)>(L"ucrtbase.dll", "fmod");
  return static_cast<unsigned>(sum + power(1.0 + seed % 5, 3.25) + remainder(1000.5 + seed, 7.25));
}

// Numbers as texts and back, paths, and a digest.
unsigned Conversions(unsigned seed) {
  static auto* const number_from_text =
      FunctionOf<LONG WINAPI(const wchar_t*, DWORD, DWORD, double*)>(L"oleaut32.dll",
                                                                     "VarR8FromStr");
  static auto* const text_from_number =
      FunctionOf<LONG WINAPI(double, DWORD, DWORD, wchar_t**)>(L"oleaut32.dll", "VarBstrFromR8");
  static auto* const free_text =
      FunctionOf<void WINAPI(wchar_t*)>(L"oleaut32.dll", "SysFreeString");
  static auto* const canonicalize =
      FunctionOf<BOOL WINAPI(wchar_t*, const wchar_t*)>(L"shlwapi.dll", "PathCanonicalizeW");
  static auto* const hash =
      FunctionOf<LONG WINAPI(const unsigned char*, DWORD, unsigned char*, DWORD)>(L"shlwapi.dll",
                                                                                  "HashData");
  static auto* const begin = FunctionOf<void WINAPI(void*)>(L"advapi32.dll", "MD5Init");
  static auto* const add =
      FunctionOf<void WINAPI(void*, const void*, unsigned)>(L"advapi32.dll", "MD5Update");
  static auto* const end = FunctionOf<void WINAPI(void*)>(L"advapi32.dll", "MD5Final");
  double number = 0;
  number_from_text(L"1234.5678", LOCALE_INVARIANT, 0, &number);
  wchar_t* text = nullptr;
  unsigned sum = text_from_number(number + seed, LOCALE_INVARIANT, 0, &text) == 0 ? text[0] : 0;
  free_text(text);
  std::array<wchar_t, MAX_PATH> path{};
  sum += static_cast<unsigned>(canonicalize(path.data(), L"C:\\one\\..\\two\\.\\three"));
  std::array<unsigned char, 512> state{};
  hash(reinterpret_cast<const unsigned char*>(path.data()), 32, state.data(), 16);
  begin(state.data());
  add(state.data(), path.data(), 100);
  end(state.data());
  return sum + state[88];
}

// The loader, and the system's own walk of the stack.
unsigned Loader(unsigned seed) {
  const HMODULE library = LoadLibraryW(L"ucrtbase.dll");
  unsigned sum = GetProcAddress(library, "fopen") == nullptr ? 0 : 1;
  sum += GetModuleHandleW(L"ntdll.dll") == nullptr ? 0 : 1;
  FreeLibrary(library);
  const DWORD slot = FlsAlloc([](void* value) { *static_cast<unsigned*>(value) = 1; });
  FlsSetValue(slot, &sum);
  FlsFree(slot);
  std::array<void*, 16> frames{};
  return sum + seed + RtlCaptureStackBackTrace(0, frames.size(), frames.data(), nullptr);
}

}  // namespace

unsigned RunSystemCode(unsigned seed) {
  return Files() + Memory(seed) + Locks() + Texts(seed) + Registry() + OtherCLibrary(seed) +
         Mathematics(seed) + Conversions(seed) + Loader(seed);
}

}  // namespace strobe::testing
