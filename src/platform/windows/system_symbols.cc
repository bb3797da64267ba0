#include "system_symbols.h"

#include <windows.h>
// These need windows.h before them.
#include <dbghelp.h>

#include <mutex>
#include <type_traits>

#include "library_function.h"
#include "utf8.h"

namespace strobe::internal {
namespace {

constexpr DWORD64 kBase = 0x180000000;  // any place: the image is read from its file
constexpr ULONG kTagFunction = 5;       // SymTagFunction, in no header of the SDK
constexpr ULONG kTagPublic = 10;        // SymTagPublicSymbol: the only kind in a public PDB file
constexpr DWORD kIgnoreSymbolPath = 0x1000;  // SYMOPT_IGNORE_NT_SYMPATH, not in mingw-w64's header

// The functions of the library. It is loaded when the first image needs it, and never unloaded.
struct DebugHelp {
  decltype(&SymInitializeW) initialize = nullptr;
  decltype(&SymCleanup) cleanup = nullptr;
  decltype(&SymGetOptions) get_options = nullptr;
  decltype(&SymSetOptions) set_options = nullptr;
  decltype(&SymLoadModuleExW) load_module = nullptr;
  decltype(&SymGetModuleInfoW64) get_module_info = nullptr;
  decltype(&SymEnumSymbolsW) enumerate = nullptr;
  bool is_complete = true;

  DebugHelp() {
    const HMODULE library = LoadLibraryExW(L"dbghelp.dll", nullptr, LOAD_LIBRARY_SEARCH_SYSTEM32);
    const auto resolve = [&](auto& function, const char* name) {
      function = FindFunction<std::remove_reference_t<decltype(function)>>(library, name);
      is_complete = is_complete && function != nullptr;
    };
    resolve(initialize, "SymInitializeW");
    resolve(cleanup, "SymCleanup");
    resolve(get_options, "SymGetOptions");
    resolve(set_options, "SymSetOptions");
    resolve(load_module, "SymLoadModuleExW");
    resolve(get_module_info, "SymGetModuleInfoW64");
    resolve(enumerate, "SymEnumSymbolsW");
  }
};

// False if the library only has names for the image's exports, which ReadExports finds as well.
bool HasDebugInformation(const DebugHelp& library, HANDLE session) {
  IMAGEHLP_MODULEW64 module = {};
  module.SizeOfStruct = sizeof(module);
  return library.get_module_info(session, kBase, &module) != 0 &&
         (module.SymType == SymPdb || module.SymType == SymDia);
}

BOOL CALLBACK Visit(PSYMBOL_INFOW symbol, ULONG /*bytes*/, PVOID context) {
  const bool is_function = (symbol->Tag == kTagFunction || symbol->Tag == kTagPublic) &&
                           (symbol->Flags & SYMFLAG_EXPORT) == 0;
  if (!is_function || symbol->Address < kBase) return TRUE;
  // A public symbol has no size; Wine says 1.
  const std::uint64_t bytes = symbol->Tag == kTagFunction ? symbol->Size : 0;
  const auto& visit = *static_cast<const SymbolFiles::SymbolVisitor*>(context);
  return visit(symbol->Address - kBase, bytes,
               Utf8FromWide(
                   std::wstring_view(symbol->Name, wcsnlen(symbol->Name, symbol->MaxNameLen))))
             ? TRUE
             : FALSE;
}

}  // namespace

// Each image has its own session of the library, under a handle that is not a process. The program
// may have sessions of its own.
bool VisitSystemSymbols(const std::string& path, const SymbolFiles::SymbolVisitor& visit) {
  static std::mutex mutex;  // the library works for one thread at a time
  const std::unique_lock lock(mutex, std::try_to_lock);
  if (!lock.owns_lock()) return false;
  static const DebugHelp library;
  if (!library.is_complete) return true;
  const std::wstring image = WideFromUtf8(path);
  const HANDLE session = &mutex;
  const DWORD options = library.get_options();
  // No dialog is shown, a file that does not match exactly is not taken, and the user's symbol
  // path, which may name a remote server, is not searched.
  library.set_options(SYMOPT_UNDNAME | SYMOPT_EXACT_SYMBOLS | SYMOPT_FAIL_CRITICAL_ERRORS |
                      SYMOPT_NO_PROMPTS | kIgnoreSymbolPath);
  if (library.initialize(session, image.substr(0, image.find_last_of(L"\\/")).c_str(), FALSE) !=
      0) {
    if (library.load_module(session, nullptr, image.c_str(), nullptr, kBase, 0, nullptr, 0) != 0 &&
        HasDebugInformation(library, session)) {
      library.enumerate(session, kBase, L"*", &Visit,
                        const_cast<SymbolFiles::SymbolVisitor*>(&visit));
    }
    library.cleanup(session);
  }
  library.set_options(options);
  return true;
}

}  // namespace strobe::internal
