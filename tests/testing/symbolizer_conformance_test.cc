#include "strobe/testing/symbolizer_conformance.h"

#include "strobe/symbolize/elf_symbolizer.h"

namespace strobe::testing {
namespace {

// Leaves the names to the viewer.
struct NoSymbolizer {
  absl::StatusOr<Symbols> Symbolize(const Profile& /*profile*/) { return Symbols{}; }
};

INSTANTIATE_TYPED_TEST_SUITE_P(ElfSymbolizer, SymbolizerConformance, ElfSymbolizer);
INSTANTIATE_TYPED_TEST_SUITE_P(NoSymbolizer, SymbolizerConformance, NoSymbolizer);

}  // namespace
}  // namespace strobe::testing
