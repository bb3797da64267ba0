// The names of the profiler and of its session, for a header of a program that only mentions them:
// as a reference, a pointer or a parameter. It costs such a header nothing.
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
