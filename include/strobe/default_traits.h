// DefaultTraits: the default parts of a profiler. This is the only list of them.
#pragma once

#include "strobe/clock/system_clock.h"
#include "strobe/encode/pprof_encoder.h"
#include "strobe/export/output_list.h"
#include "strobe/platform/file_exporter.h"
#include "strobe/platform/native.h"
#include "strobe/platform/platform_symbolizer.h"
#include "strobe/provider/cpu_time_provider.h"
#include "strobe/provider/off_cpu_time_provider.h"
#include "strobe/provider/provider_list.h"
#include "strobe/provider/wall_time_provider.h"
#include "strobe/ring/spsc_ring.h"
#include "strobe/unwind/cfi_step.h"
#include "strobe/unwind/chain_unwinder.h"
#include "strobe/unwind/frame_pointer_step.h"

namespace strobe {

// Derive from DefaultTraits and redeclare the parts to change. A part that is added later is
// inherited.
//
//   struct MyTraits : strobe::DefaultTraits {
//     using Outputs = strobe::OutputList<strobe::Output<strobe::PprofEncoder, MyExporter>>;
//   };
//   strobe::BasicProfiler<MyTraits> profiler;
struct DefaultTraits {
  using Clock = SystemClock;
  using Ring = SpscRing;
  using Unwinder = ChainUnwinder<CfiStep, FramePointerStep>;
  using Providers = ProviderList<CpuTimeProvider, WallTimeProvider, OffCpuTimeProvider>;
  using Symbolizer = PlatformSymbolizer<NativePlatform>;
  using Outputs = OutputList<Output<PprofEncoder, FileExporter>>;
  using Platform = NativePlatform;
};

}  // namespace strobe
