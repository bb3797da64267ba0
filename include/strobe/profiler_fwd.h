// Forward declarations of the profiler and of its session, for headers of a program that use them
// only as a reference, a pointer or a parameter. Including it costs almost no compile time.
//
//   #include "strobe/profiler_fwd.h"
//
//   class Server {
//    public:
//     explicit Server(strobe::Profiler& profiler);
#pragma once

namespace strobe {

struct DefaultTraits;  // strobe/own_parts.h

template <class Traits>
class BasicProfiler;
using Profiler = BasicProfiler<DefaultTraits>;

template <class Traits>
class BasicScopedProfiler;
using ScopedProfiler = BasicScopedProfiler<DefaultTraits>;

}  // namespace strobe
