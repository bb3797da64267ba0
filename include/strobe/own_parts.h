// Include this to compose a profiler of parts of your own: it has the default parts, and the
// templates behind BasicProfiler<Traits>.
//
//   struct MyTraits : strobe::DefaultTraits {
//     using Outputs = strobe::OutputList<strobe::Output<strobe::PprofEncoder, MyExporter>>;
//   };
//   strobe::BasicProfiler<MyTraits> profiler;
#pragma once

#include "strobe/default_traits.h"                // IWYU pragma: export
#include "strobe/profiler.h"                      // IWYU pragma: export
#include "strobe/runtime/control/core_factory.h"  // IWYU pragma: export
#include "strobe/scoped_profiler.h"               // IWYU pragma: export
