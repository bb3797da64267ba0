#include "kept_profiles.h"

namespace strobe {

template std::unique_ptr<const internal::CoreFactory>
internal::MakeCoreFactory<testing::NamedKeepingTraits>();
template std::unique_ptr<const internal::CoreFactory>
internal::MakeCoreFactory<testing::KeepingTraits>();
template std::unique_ptr<const internal::CoreFactory>
internal::MakeCoreFactory<testing::CpuOnlyTraits>();

}  // namespace strobe
