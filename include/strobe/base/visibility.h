// STROBE_HIDDEN_BEGIN and STROBE_HIDDEN_END stand around what is internal, in each header. Two
// plug-ins of one process may each have linked a copy of this library: what lies between keeps its
// symbols to itself, whatever flags the user compiles with, so that no copy uses another's code or
// state. Public types keep the visibility that the user's flags give them: g++ warns of every class
// of the user's that has a member of a hidden type. STROBE_HOLDS_HIDDEN_BEGIN and _END stand around
// those public classes that have one themselves.
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
