// The only header that most programs include. A program that composes a profiler of parts of its
// own also includes strobe/own_parts.h.
//
//   strobe::Profiler profiler;
//   auto registration = profiler.RegisterThread("main");
//   strobe::ScopedProfiler session(profiler);
#pragma once

// This check comes first, because in an older language the headers below have errors of their own.
#if (defined(_MSVC_LANG) ? _MSVC_LANG : __cplusplus) < 202002L
#error "Strobe needs C++20: compile with -std=c++20 (MSVC: /std:c++20), or later"
#else

#include "strobe/core/settings/messages.h"     // IWYU pragma: export
#include "strobe/process_label.h"              // IWYU pragma: export
#include "strobe/profiler.h"                   // IWYU pragma: export
#include "strobe/profiler_from_environment.h"  // IWYU pragma: export
#include "strobe/scoped_labels.h"              // IWYU pragma: export
#include "strobe/scoped_profiler.h"            // IWYU pragma: export
#include "strobe/scoped_trace.h"               // IWYU pragma: export
#include "strobe/scoped_zone.h"                // IWYU pragma: export
#include "strobe/slow_span.h"                  // IWYU pragma: export
#include "strobe/watched_limit.h"              // IWYU pragma: export

#endif
