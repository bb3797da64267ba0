#include "strobe/testing/symbolizer_conformance.h"

#include "strobe/platform/native.h"
#include "strobe/platform/platform_symbolizer.h"

namespace strobe::testing {
namespace {

// Leaves the names to the viewer.
struct NoSymbolizer {
  absl::StatusOr<Symbols> Symbolize(const Profile& /*profile*/) { return Symbols{}; }
};

INSTANTIATE_TYPED_TEST_SUITE_P(PlatformSymbolizer, SymbolizerConformance,
                               PlatformSymbolizer<NativePlatform>);
INSTANTIATE_TYPED_TEST_SUITE_P(NoSymbolizer, SymbolizerConformance, NoSymbolizer);

}  // namespace
}  // namespace strobe::testing
