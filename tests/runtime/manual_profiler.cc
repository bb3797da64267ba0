#include "manual_traits.h"

namespace strobe {

template std::unique_ptr<const internal::CoreFactory>
internal::MakeCoreFactory<testing::ManualTraits>();

}  // namespace strobe
