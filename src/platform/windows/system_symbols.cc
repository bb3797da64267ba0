#include "system_symbols.h"

#include <windows.h>
// These need windows.h before them.
#include <dbghelp.h>

#include <algorithm>
#include <array>
#include <functional>
#include <memory>
#include <mutex>
#include <type_traits>
#include <vector>

#include "library_function.h"
#include "utf8.h"

namespace strobe::internal {
namespace {

constexpr DWORD64 kBase = 0x180000000;  // any place: the image is read from its file
constexpr ULONG kTagFunction = 5;       // SymTagFunction, in no header of the SDK
constexpr ULONG kTagPublic = 10;        // SymTagPublicSymbol: the only kind in a public PDB file
constexpr DWORD kIgnoreSymbolPath = 0x1000;  // SYMOPT_IGNORE_NT_SYMPATH, not in mingw-w64's header

// What Windows 8 added for inlined functions is not in mingw-w64's header. A context stands for one
// of the functions at an address: the innermost has the first number, and the function that they
// were inlined into the last.
using CountInlined = DWORD(WINAPI*)(HANDLE session, DWORD64 address);
using QueryInlined = BOOL(WINAPI*)(HANDLE session, DWORD64 start, DWORD start_context,
                                   DWORD64 start_return, DWORD64 address, LPDWORD context,
                                   LPDWORD frame);
using SymbolInContext = BOOL(WINAPI*)(HANDLE session, DWORD64 address, ULONG context,
                                      PDWORD64 displacement, PSYMBOL_INFOW symbol);
using LineInContext = BOOL(WINAPI*)(HANDLE session, DWORD64 address, ULONG context,
                                    DWORD64 module_base, PDWORD displacement,
                                    PIMAGEHLP_LINEW64 line);

// The functions of the library. It is loaded when the first image needs it, and never unloaded.
struct DebugHelp {
  decltype(&SymInitializeW) initialize = nullptr;
  decltype(&SymCleanup) cleanup = nullptr;
  decltype(&SymGetOptions) get_options = nullptr;
  decltype(&SymSetOptions) set_options = nullptr;
  decltype(&SymLoadModuleExW) load_module = nullptr;
  decltype(&SymGetModuleInfoW64) get_module_info = nullptr;
  decltype(&SymEnumSymbolsW) enumerate = nullptr;
  decltype(&SymGetLineFromAddrW64) get_line = nullptr;
  bool is_complete = true;
  CountInlined count_inlined = nullptr;
  QueryInlined query_inlined = nullptr;
  SymbolInContext symbol_in = nullptr;
  LineInContext line_in = nullptr;
  bool has_inlined = false;

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
    resolve(get_line, "SymGetLineFromAddrW64");
    count_inlined = FindFunction<CountInlined>(library, "SymAddrIncludeInlineTrace");
    query_inlined = FindFunction<QueryInlined>(library, "SymQueryInlineTrace");
    symbol_in = FindFunction<SymbolInContext>(library, "SymFromInlineContextW");
    line_in = FindFunction<LineInContext>(library, "SymGetLineFromInlineContextW");
    has_inlined = count_inlined != nullptr && query_inlined != nullptr && symbol_in != nullptr &&
                  line_in != nullptr;
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

void SetLine(const IMAGEHLP_LINEW64& line, SourceFrame& frame) {
  constexpr DWORD kHiddenLines = 0xF00F00;  // 0xF00F00 and 0xFEEFEE mark code without a line
  if (line.FileName == nullptr || line.LineNumber == 0 || line.LineNumber >= kHiddenLines) return;
  frame.file = Utf8FromWide(line.FileName);
  frame.line = line.LineNumber;
}

SourceFrame FrameIn(const DebugHelp& library, HANDLE session, DWORD64 address, DWORD context) {
  SourceFrame frame;
  struct NamedSymbol {
    SYMBOL_INFOW symbol;
    std::array<wchar_t, MAX_SYM_NAME> more;  // `symbol` ends with the name's first letter
  };
  auto named = std::make_unique<NamedSymbol>();
  named->symbol.SizeOfStruct = sizeof(named->symbol);
  named->symbol.MaxNameLen = MAX_SYM_NAME;
  DWORD64 displacement = 0;
  if (library.symbol_in(session, address, context, &displacement, &named->symbol) != 0) {
    frame.function = Utf8FromWide(
        std::wstring_view(named->symbol.Name, wcsnlen(named->symbol.Name, MAX_SYM_NAME)));
  }
  IMAGEHLP_LINEW64 line = {};
  line.SizeOfStruct = sizeof(line);
  DWORD line_displacement = 0;
  if (library.line_in(session, address, context, 0, &line_displacement, &line) != 0)
    SetLine(line, frame);
  return frame;
}

std::vector<SourceFrame> FramesAt(const DebugHelp& library, HANDLE session, DWORD64 address) {
  constexpr DWORD kMaxInlined = 256;
  std::vector<SourceFrame> frames;
  DWORD context = 0;
  DWORD frame = 0;
  if (const DWORD inlined = library.has_inlined ? library.count_inlined(session, address) : 0;
      inlined != 0 &&
      library.query_inlined(session, address, 0, address, address, &context, &frame) != 0) {
    for (DWORD i = 0; i <= std::min(inlined, kMaxInlined); ++i)
      frames.push_back(FrameIn(library, session, address, context + i));
    return frames;
  }
  IMAGEHLP_LINEW64 line = {};
  line.SizeOfStruct = sizeof(line);
  DWORD displacement = 0;
  if (library.get_line(session, address, &displacement, &line) != 0)
    SetLine(line, frames.emplace_back());
  return frames;
}

// Calls `use` while the library has the image's debug information, if it has any. False if another
// thread is using it. Each image has its own session of the library, under a handle that is not a
// process. The program may have sessions of its own.
bool UseDebugInformation(const std::string& path,
                         const std::function<void(const DebugHelp&, HANDLE session)>& use) {
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
  library.set_options(SYMOPT_UNDNAME | SYMOPT_LOAD_LINES | SYMOPT_EXACT_SYMBOLS |
                      SYMOPT_FAIL_CRITICAL_ERRORS | SYMOPT_NO_PROMPTS | kIgnoreSymbolPath);
  if (library.initialize(session, image.substr(0, image.find_last_of(L"\\/")).c_str(), FALSE) !=
      0) {
    if (library.load_module(session, nullptr, image.c_str(), nullptr, kBase, 0, nullptr, 0) != 0 &&
        HasDebugInformation(library, session))
      use(library, session);
    library.cleanup(session);
  }
  library.set_options(options);
  return true;
}

}  // namespace

bool VisitSystemSymbols(const std::string& path, const SymbolFiles::SymbolVisitor& visit) {
  return UseDebugInformation(path, [&](const DebugHelp& library, HANDLE session) {
    library.enumerate(session, kBase, L"*", &Visit,
                      const_cast<SymbolFiles::SymbolVisitor*>(&visit));
  });
}

bool VisitSystemLines(const std::string& path, std::span<const std::uint64_t> addresses,
                      const SymbolFiles::LineVisitor& visit) {
  return UseDebugInformation(path, [&](const DebugHelp& library, HANDLE session) {
    for (const std::uint64_t address : addresses) {
      if (!visit(address, FramesAt(library, session, kBase + address))) return;
    }
  });
}

}  // namespace strobe::internal
