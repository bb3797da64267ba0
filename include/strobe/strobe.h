// The one header that a program includes, unless it composes parts of its own: that one includes
// strobe/own_parts.h.
//
//   strobe::Profiler profiler;
//   auto registration = profiler.RegisterThread("main");
//   strobe::ScopedProfiler session(profiler);
#pragma once

// Before anything else: in an older language every header below has errors of its own.
#if (defined(_MSVC_LANG) ? _MSVC_LANG : __cplusplus) < 202002L
#error "Strobe needs C++20: compile with -std=c++20 (MSVC: /std:c++20), or later"
#else

#include "strobe/profiler.h"         // IWYU pragma: export
#include "strobe/scoped_profiler.h"  // IWYU pragma: export

#endif
