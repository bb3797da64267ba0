#include "collecting_exporter.h"

namespace strobe {

template std::unique_ptr<const internal::CoreFactory>
internal::MakeCoreFactory<testing::CollectingTraits>();
template std::unique_ptr<const internal::CoreFactory>
internal::MakeCoreFactory<testing::CountedTraits<>>();

}  // namespace strobe
