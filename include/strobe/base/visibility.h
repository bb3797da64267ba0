// STROBE_HIDDEN_BEGIN and STROBE_HIDDEN_END enclose the internal declarations of each header. Their
// symbols are hidden, whatever flags the program is compiled with: if two plug-ins of one process
// have each linked a copy of this library, neither copy uses the other's code or state. Public
// types keep the visibility that the program's flags give them, because g++ warns about every class
// of the program with a member of a hidden type. STROBE_HOLDS_HIDDEN_BEGIN and _END enclose the
// public classes that have such a member.
#pragma once

#if defined(__ELF__)
#define STROBE_HIDDEN_BEGIN _Pragma("GCC visibility push(hidden)")
#define STROBE_HIDDEN_END _Pragma("GCC visibility pop")
#define STROBE_HOLDS_HIDDEN_BEGIN \
  _Pragma("GCC diagnostic push") _Pragma("GCC diagnostic ignored \"-Wattributes\"")
#define STROBE_HOLDS_HIDDEN_END _Pragma("GCC diagnostic pop")
#else
#define STROBE_HIDDEN_BEGIN
#define STROBE_HIDDEN_END
#define STROBE_HOLDS_HIDDEN_BEGIN
#define STROBE_HOLDS_HIDDEN_END
#endif
