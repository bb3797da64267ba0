#include "strobe/profiler.h"

namespace strobe {

template std::unique_ptr<internal::AbstractCore> internal::MakeCore<DefaultTraits>(
    ProfilerOptions options, Parts<DefaultTraits> parts);

}  // namespace strobe
