// The one header that a program includes.
//
//   strobe::Profiler profiler;
//   auto registration = profiler.RegisterThread("main");
//   strobe::ScopedProfiler session(profiler);
#pragma once

#include "strobe/default_traits.h"   // IWYU pragma: export
#include "strobe/profiler.h"         // IWYU pragma: export
#include "strobe/scoped_profiler.h"  // IWYU pragma: export
