// All that a program needs beside strobe/strobe.h to compose a profiler of parts of its own: the
// default parts, and what compiles a BasicProfiler<Traits>.
//
//   struct MyTraits : strobe::DefaultTraits {
//     using Outputs = strobe::OutputList<strobe::Output<strobe::PprofEncoder, MyExporter>>;
//   };
//   strobe::BasicProfiler<MyTraits> profiler;
#pragma once

#include "strobe/default_traits.h"        // IWYU pragma: export
#include "strobe/profiler.h"              // IWYU pragma: export
#include "strobe/runtime/core_factory.h"  // IWYU pragma: export
#include "strobe/scoped_profiler.h"       // IWYU pragma: export
