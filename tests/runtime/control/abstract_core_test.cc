#include "strobe/runtime/control/abstract_core.h"

#include <type_traits>

#include "gtest/gtest.h"
#include "strobe/profiler_fwd.h"

namespace strobe::internal {
namespace {

// The header of a program that keeps the default parts: DefaultTraits has no definition here.
TEST(AbstractCore, TheFactoryOfTheDefaultPartsIsCompiledInTheLibrary) {
  const std::unique_ptr<const CoreFactory> factory = MakeCoreFactory<DefaultTraits>();
  ASSERT_NE(factory, nullptr);
  const std::unique_ptr<AbstractCore> core = factory->Make({});
  ASSERT_NE(core, nullptr);
  EXPECT_TRUE(core->IsOfThisProcess());
  EXPECT_FALSE(std::is_copy_constructible_v<AbstractCore>);
}

}  // namespace
}  // namespace strobe::internal
