// STROBE_HIDDEN stands before the name of the internal namespace of each header. What is in it has
// hidden symbols, whatever flags the program is compiled with: if two plug-ins of one process have
// each linked a copy of this library, neither copy uses the other's code or state. Public types
// keep the visibility that the program's flags give them, because g++ warns (-Wattributes) about
// every class of the program with a member of a hidden type. The public classes that have such a
// member switch that warning off.
#pragma once

#if defined(__ELF__)
#define STROBE_HIDDEN [[gnu::visibility("hidden")]]
#else
#define STROBE_HIDDEN
#endif
