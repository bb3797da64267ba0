#include "strobe/profiler.h"

#include "strobe/own_parts.h"

namespace strobe {

template std::unique_ptr<const internal::CoreFactory> internal::MakeCoreFactory<DefaultTraits>();

}  // namespace strobe
