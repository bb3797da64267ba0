// JudgeProgramFile: whether what is executed can load a preloaded library.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "strobe/base/visibility.h"

namespace strobe {
namespace STROBE_HIDDEN internal {

enum class ProgramKind : std::uint8_t {
  kUnknown,            // no ELF file, or one that may not be read: exec says what is wrong
  kPreloadable,        // glibc's loader for x86-64 starts it
  kStatic,             // it has no loader
  kOtherLibrary,       // its loader is another C library's
  k32Bit,              // an ELF file of another class
  kOtherArchitecture,  // not for x86-64
  kIncomplete,         // the file ends within its header
};

struct ProgramFile {
  // The kernel's limit for the first line of a script.
  static constexpr std::size_t kMaxScriptHead = 256;

  ProgramKind kind = ProgramKind::kUnknown;
  // The kernel gives it other rights than those of its user. Its loader then ignores what is
  // preloaded, and the kernel takes the perf events of the process away when it executes it.
  bool has_other_rights = false;
  // The path of what interprets a script, which is then what the rest is of. Empty: no script.
  std::array<char, kMaxScriptHead> interpreter{};

  [[nodiscard]] std::string_view interpreter_path() const { return interpreter.data(); }
  // True if it runs, and does not load what LD_PRELOAD names.
  [[nodiscard]] bool LoadsNoLibrary() const {
    return has_other_rights || kind == ProgramKind::kStatic || kind == ProgramKind::kOtherLibrary ||
           kind == ProgramKind::k32Bit;
  }
};

// Judges the file at `path` as the kernel would execute it for this process. Opens files, and
// closes them. Signal-safe, and for a child of vfork.
ProgramFile JudgeProgramFile(const char* path) noexcept;

}  // namespace internal
}  // namespace strobe
